//! Bytes that an edit must not touch.

use std::{fs, path::Path};

use serde_json::json;

use crate::support::{Step, TestEnvironment, Wire};

fn edit(path: &str, old: &str, new: &str) -> Step {
    Step::call("edit_file", json!({"path": path, "old": old, "new": new}))
}

#[test]
fn an_edit_keeps_line_endings_marks_and_the_missing_last_newline() {
    for wire in Wire::BOTH {
        let files: [(&str, &[u8]); 5] = [
            ("crlf.txt", b"first\r\nTARGET one\r\nlast\r\n"),
            ("mixed.txt", b"u1\nu2\r\nTARGET one\nu3\r\nu4\n"),
            ("lonecr.txt", b"p1\rp2\rTARGET one\rp3\n"),
            ("bom.txt", b"\xef\xbb\xbfhead\nTARGET one\n"),
            ("nonl.txt", b"x\nTARGET one"),
        ];
        let mut steps: Vec<Step> = files.iter().map(|(name, _)| edit(name, "TARGET one", "CHANGED two")).collect();
        steps.push(edit("crlf.txt", "first\nCHANGED two\n", "first\nCHANGED two\nINSERTED\n"));
        steps.push(Step::hand_back());
        let env = TestEnvironment::new(wire, steps);
        env.checkout.write(".gitattributes", "* -text\n");
        for (name, bytes) in files {
            env.checkout.write(name, bytes);
        }
        env.checkout.commit("files");
        let result = env.delegate(&[], "Replace TARGET one; insert a line in crlf.txt.").ends(0, "handback");
        for (name, bytes) in files {
            let mut wanted = String::from_utf8(bytes.to_vec()).unwrap().replace("TARGET one", "CHANGED two");
            if name == "crlf.txt" {
                wanted = wanted.replace("CHANGED two\r\n", "CHANGED two\r\nINSERTED\r\n");
            }
            let is = String::from_utf8(env.on_branch(&result, name).unwrap()).unwrap();
            assert_eq!(is, wanted, "{name}");
        }
    }
}

#[test]
fn a_link_in_the_repository_stays_a_link_and_its_target_changes() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                edit("link.txt", "OLD", "NEW"),
                edit("dirlink/t.txt", "NEW", "NEWER"),
                Step::call("write_file", json!({"path": "dangling.txt", "content": "x\n"})),
                Step::call("read_file", json!({"path": "outside.txt"})),
                Step::hand_back(),
            ],
        );
        let secret = env.root().join("secret.txt");
        fs::write(&secret, "not yours\n").unwrap();
        env.checkout.write("real/t.txt", "OLD\n").link("real/t.txt", "link.txt").link("real", "dirlink");
        env.checkout.link("nowhere.txt", "dangling.txt").link(secret.to_str().unwrap(), "outside.txt").commit("links");
        let result = env.delegate(&[], "Change OLD in link.txt.").ends(0, "handback");
        let branch = result["branch"].as_str().unwrap();
        for (link, target) in [("link.txt", "real/t.txt"), ("dirlink", "real"), ("dangling.txt", "nowhere.txt")] {
            assert!(env.checkout.git(&["ls-tree", branch, "--", link]).starts_with("120000"), "{link} is no link");
            assert_eq!(env.on_branch(&result, link).unwrap(), target.as_bytes());
        }
        assert_eq!(env.on_branch(&result, "real/t.txt").unwrap(), b"NEWER\n");
        if let Some(made) = env.on_branch(&result, "nowhere.txt") {
            assert_eq!(made, b"x\n"); // or the write was refused
        }
        let requests = env.server.requests();
        assert!(!requests[4].raw.contains("not yours"), "a link out of the repository was followed");
    }
}

#[test]
fn bytes_that_are_no_utf8_survive_an_edit_and_a_binary_is_named_as_one() {
    for wire in Wire::BOTH {
        let source: &[u8] = b"// pr\xe9fixe \x93quoted\x94\nvalue := OLD;\n// fim \xe7\xe3o\n";
        let binary: Vec<u8> = (0..400u32).map(|n| u8::try_from((n * 167 + 13) % 256).unwrap()).collect();
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::call("read_file", json!({"path": "unit.pas"})),
                edit("unit.pas", "OLD", "NEW"),
                Step::call("read_file", json!({"path": "blob.bin"})),
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
                Step::hand_back(),
            ],
        );
        env.checkout.write("unit.pas", source).write("blob.bin", &binary).commit("bytes");
        let result = env.delegate(&[], "Set NEW in unit.pas.").ends(0, "handback");
        let is = env.on_branch(&result, "unit.pas").unwrap();
        let at = source.windows(3).position(|three| three == b"OLD").unwrap();
        let edited = [&source[..at], b"NEW", &source[at + 3..]].concat();
        assert_eq!(is, edited, "bytes outside the edit changed, or it was not made");
        assert_eq!(env.on_branch(&result, "blob.bin").unwrap(), binary);
        let answer = env.server.requests()[3].last_answers().remove(0).text;
        assert!(answer.to_lowercase().contains("binary") && answer.len() < 500, "{answer}");
        assert!(Path::new(&env.checkout.path().join("unit.pas")).exists());
    }
}

/// N2-12.
#[test]
fn what_the_model_was_not_shown_is_not_written_over_and_an_encoding_stays() {
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("[app]\r\nname=Zoë\r\nk=1\r\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let blob: Vec<u8> = (0..10_240_u32).map(|n| u8::try_from(n % 256).unwrap()).collect();
    let write = |path: &str, content: &str| json!({"path": path, "content": content});
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![
            Step::call("read_file", json!({"path": "u16.ini"}))
                .and_call("read_file", json!({"path": "bom.ini"}))
                .and_call("read_file", json!({"path": "blob.dat"})),
            edit("u16.ini", "k=1", "k=2").and_call("write_file", write("bom.ini", "name=Zoë\nk=3\n")),
            Step::call("write_file", write("u16.ini", "[app]\nname=Zoe\nk=2\n"))
                .and_call("write_file", write("blob.dat", "k=2\n")),
            Step::hand_back(),
        ],
    );
    env.checkout.write("u16.ini", &utf16).write("blob.dat", &blob);
    env.checkout.write("bom.ini", "\u{feff}name=Zoë\r\nk=1\r\n").commit("encodings");
    let result = env.delegate(&[], "Set k to 3 in bom.ini and to 2 in u16.ini.").ends(0, "handback");
    assert_eq!(env.on_branch(&result, "u16.ini").unwrap(), utf16);
    assert_eq!(env.on_branch(&result, "blob.dat").unwrap(), blob);
    assert_eq!(env.on_branch(&result, "bom.ini").unwrap(), "\u{feff}name=Zoë\r\nk=3\r\n".as_bytes());
    let answers = env.server.requests()[3].last_answers();
    assert!(answers.iter().all(|answer| answer.text.contains("was not shown to you")), "{answers:?}");
}
