
use builtin;
use str;

set edit:completion:arg-completer[nisse] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'nisse'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'nisse'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
            cand delegate 'Run one bounded task on a branch of its own'
            cand resume 'Go on with a task that was cut off'
            cand apply 'Bring the work of a finished task into your checkout'
            cand drop 'Give a task up'
            cand log 'List the tasks of this checkout, or the events of one'
            cand models 'List the models that the proxy offers to this key'
            cand doctor 'Check everything that a run needs'
            cand demo 'Watch a whole delegation with nothing set up'
            cand completions 'Print a completion script for a shell'
            cand man 'Print a manual page'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'nisse;delegate'= {
            cand --file 'Read the brief from FILE'
            cand --check 'Require CMD to exit with 0; repeatable [check.commands: none]'
            cand --branch 'Name the branch [nisse/<task>-<words of the brief>]'
            cand --base 'Start from this commit, without unfinished work [the checkout as it is]'
            cand --model 'Ask this model [roles.delegate]'
            cand --max-turns 'Allow so many replies [delegate.max_turns: 30]'
            cand --max-tokens 'Allow so many tokens, input of every turn and output [delegate.max_tokens: 1500000]'
            cand --max-time 'Allow so much active time [delegate.max_time: 15m]'
            cand --max-cost 'Allow so many US dollars, such as 2.50 [delegate.max_cost: none]'
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --trust-project 'Run the checks that the repository''s nisse.toml names'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;resume'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --rollback 'Put the files back to the last checkpoint, and go on'
            cand --keep 'Keep what is in the worktree, and go on'
            cand --drop 'Give the task up, as `nisse drop` does'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;apply'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --commit 'Make a commit of yours of each commit of the task'
            cand --squash 'Make one commit of yours of it'
            cand --merge 'Merge the task''s branch with a merge commit of yours'
            cand --abort 'Put back what was applied and is not committed'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;drop'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;log'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --diff 'Show what the task changed, as a patch that `git apply` takes'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;models'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;doctor'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;demo'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;completions'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;man'= {
            cand -C 'Work in the repository at PATH instead of the current directory'
            cand --repo 'Work in the repository at PATH instead of the current directory'
            cand --color 'Use colour: auto, always or never'
            cand --config 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]'
            cand --state-dir 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]'
            cand --json 'Print JSON on stdout'
            cand -v 'Tell more'
            cand --verbose 'Tell more'
            cand -q 'Tell only results and errors'
            cand --quiet 'Tell only results and errors'
            cand --no-input 'Never ask anything'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'nisse;help'= {
            cand delegate 'Run one bounded task on a branch of its own'
            cand resume 'Go on with a task that was cut off'
            cand apply 'Bring the work of a finished task into your checkout'
            cand drop 'Give a task up'
            cand log 'List the tasks of this checkout, or the events of one'
            cand models 'List the models that the proxy offers to this key'
            cand doctor 'Check everything that a run needs'
            cand demo 'Watch a whole delegation with nothing set up'
            cand completions 'Print a completion script for a shell'
            cand man 'Print a manual page'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'nisse;help;delegate'= {
        }
        &'nisse;help;resume'= {
        }
        &'nisse;help;apply'= {
        }
        &'nisse;help;drop'= {
        }
        &'nisse;help;log'= {
        }
        &'nisse;help;models'= {
        }
        &'nisse;help;doctor'= {
        }
        &'nisse;help;demo'= {
        }
        &'nisse;help;completions'= {
        }
        &'nisse;help;man'= {
        }
        &'nisse;help;help'= {
        }
    ]
    $completions[$command]
}
