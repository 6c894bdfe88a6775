
set edit:completion:arg-completer[nisse] = { |@words|
    var index = (count $words)
    set index = (- $index 1)

    put (env _CLAP_IFS="\n" _CLAP_COMPLETE_INDEX=(to-string $index) _NISSE_COMPLETE="elvish" nisse -- $@words) | to-lines
}

