complete --keep-order --exclusive --command nisse --arguments "(_NISSE_COMPLETE=fish nisse -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
