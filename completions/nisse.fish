# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_nisse_global_optspecs
    string join \n C/repo= json color= v/verbose q/quiet config= state-dir= no-input h/help V/version
end

function __fish_nisse_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_nisse_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_nisse_using_subcommand
    set -l cmd (__fish_nisse_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c nisse -n "__fish_nisse_needs_command" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_needs_command" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_needs_command" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_needs_command" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_needs_command" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_needs_command" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_needs_command" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_needs_command" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_needs_command" -s V -l version -d 'Print version'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "delegate" -d 'Run one bounded task on a branch of its own'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "resume" -d 'Go on with a task that was cut off'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "apply" -d 'Bring the work of a finished task into your checkout'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "drop" -d 'Give a task up'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "log" -d 'List the tasks of this checkout, or the events of one'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "models" -d 'List the models that the proxy offers to this key'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "doctor" -d 'Check everything that a run needs'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "demo" -d 'Watch a whole delegation with nothing set up'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "man" -d 'Print a manual page'
complete -c nisse -n "__fish_nisse_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l file -d 'Read the brief from FILE' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l check -d 'Require CMD to exit with 0; repeatable [check.commands: none]' -r -f -a "(__fish_complete_command)"
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l branch -d 'Name the branch [nisse/<task>-<words of the brief>]' -r
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l base -d 'Start from this commit, without unfinished work [the checkout as it is]' -r
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l model -d 'Ask this model [roles.delegate]' -r
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l max-turns -d 'Allow so many replies [delegate.max_turns: 30]' -r
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l max-tokens -d 'Allow so many tokens, input of every turn and output [delegate.max_tokens: 1500000]' -r
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l max-time -d 'Allow so much active time [delegate.max_time: 15m]' -r
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l max-cost -d 'Allow so many US dollars, such as 2.50 [delegate.max_cost: none]' -r
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l trust-project -d 'Run the checks that the repository\'s nisse.toml names'
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand delegate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l rollback -d 'Put the files back to the last checkpoint, and go on'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l keep -d 'Keep what is in the worktree, and go on'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l drop -d 'Give the task up, as `nisse drop` does'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l commit -d 'Make a commit of yours of each commit of the task'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l squash -d 'Make one commit of yours of it'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l merge -d 'Merge the task\'s branch with a merge commit of yours'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l abort -d 'Put back what was applied and is not committed'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand drop" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand drop" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand drop" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand drop" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand drop" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand drop" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand drop" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand drop" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand drop" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand log" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand log" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand log" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand log" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand log" -l diff -d 'Show what the task changed, as a patch that `git apply` takes'
complete -c nisse -n "__fish_nisse_using_subcommand log" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand log" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand log" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand log" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand log" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand models" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand models" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand models" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand models" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand models" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand models" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand models" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand models" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand models" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand demo" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand demo" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand demo" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand demo" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand demo" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand demo" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand demo" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand demo" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand completions" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand completions" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand completions" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand completions" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand completions" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand completions" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand completions" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand completions" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand man" -s C -l repo -d 'Work in the repository at PATH instead of the current directory' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand man" -l color -d 'Use colour: auto, always or never' -r -f -a "auto\t''
always\t''
never\t''"
complete -c nisse -n "__fish_nisse_using_subcommand man" -l config -d 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]' -r -F
complete -c nisse -n "__fish_nisse_using_subcommand man" -l state-dir -d 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c nisse -n "__fish_nisse_using_subcommand man" -l json -d 'Print JSON on stdout'
complete -c nisse -n "__fish_nisse_using_subcommand man" -s v -l verbose -d 'Tell more'
complete -c nisse -n "__fish_nisse_using_subcommand man" -s q -l quiet -d 'Tell only results and errors'
complete -c nisse -n "__fish_nisse_using_subcommand man" -l no-input -d 'Never ask anything'
complete -c nisse -n "__fish_nisse_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "delegate" -d 'Run one bounded task on a branch of its own'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "resume" -d 'Go on with a task that was cut off'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "apply" -d 'Bring the work of a finished task into your checkout'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "drop" -d 'Give a task up'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "log" -d 'List the tasks of this checkout, or the events of one'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "models" -d 'List the models that the proxy offers to this key'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "doctor" -d 'Check everything that a run needs'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "demo" -d 'Watch a whole delegation with nothing set up'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "man" -d 'Print a manual page'
complete -c nisse -n "__fish_nisse_using_subcommand help; and not __fish_seen_subcommand_from delegate resume apply drop log models doctor demo completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
