//! The proxy's address, with or without a trailing slash and with or without `/v1`; all mean the same.

use std::net::IpAddr;

use reqwest::Url;

use super::Error;

/// Where the proxy's paths begin.
#[derive(Clone, Debug)]
pub(super) struct Address(Url);

impl Address {
    /// Reads an address as a person writes it.
    pub(super) fn new(given: &str) -> Result<Self, Error> {
        let given = given.trim();
        let fault = |reason: &str| Error::Address {
            // text before an @ may be a password
            address: given.rsplit_once('@').map_or(given, |(_, host)| host).to_owned(),
            reason: reason.to_owned(),
        };
        let url = Url::parse(given).map_err(|error| fault(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(fault("it must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(fault("it contains a name or a password, which would replace the token"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(fault("it contains a query or a fragment"));
        }
        let mut root = url.clone();
        let path = url.path().trim_end_matches('/');
        root.set_path(path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/'));
        Ok(Self(root))
    }

    /// Whether it is this machine itself, which no HTTP proxy could reach.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let ip: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
        ip.map_or(host == "localhost", |ip| ip.is_loopback())
    }

    /// Whether the connection is encrypted.
    pub(super) fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The address of a path such as `/v1/models`.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_mean_the_same() {
        for given in ["http://p:4000", "http://p:4000/", "http://p:4000/v1", " http://p:4000/v1/ "] {
            assert_eq!(Address::new(given).unwrap().at("/v1/models"), "http://p:4000/v1/models");
        }
        assert_eq!(Address::new("https://h/lite/v1/").unwrap().at("/model/info"), "https://h/lite/model/info");
    }

    #[test]
    fn this_machine_is_told_from_others() {
        let is_loopback = |given| Address::new(given).unwrap().is_loopback();
        assert!(
            ["http://127.0.0.1:4000/v1", "http://[::1]:4000", "http://localhost:4000"].into_iter().all(is_loopback)
        );
        assert!(
            !["http://10.0.0.1:4000", "https://localhost.example", "http://[fe80::1]"].into_iter().any(is_loopback)
        );
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for given in ["", "p:4000", "ftp://p", "http://", "http://p?x=1", "http://p/#v1", "localhost:4000/v1"] {
            assert!(matches!(Address::new(given), Err(Error::Address { .. })), "{given}");
        }
        let told = Address::new("https://me:secret@p/v1").unwrap_err().to_string();
        assert!(told.contains("name or a password") && !told.contains("secret"), "{told}");
    }
}
