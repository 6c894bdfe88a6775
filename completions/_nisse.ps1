
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'nisse' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'nisse'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'nisse' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('delegate', 'delegate', [CompletionResultType]::ParameterValue, 'Run one bounded task on a branch of its own')
            [CompletionResult]::new('resume', 'resume', [CompletionResultType]::ParameterValue, 'Go on with a task that was cut off')
            [CompletionResult]::new('apply', 'apply', [CompletionResultType]::ParameterValue, 'Bring the work of a finished task into your checkout')
            [CompletionResult]::new('drop', 'drop', [CompletionResultType]::ParameterValue, 'Give a task up')
            [CompletionResult]::new('log', 'log', [CompletionResultType]::ParameterValue, 'List the tasks of this checkout, or the events of one')
            [CompletionResult]::new('models', 'models', [CompletionResultType]::ParameterValue, 'List the models that the proxy offers to this key')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check everything that a run needs')
            [CompletionResult]::new('demo', 'demo', [CompletionResultType]::ParameterValue, 'Watch a whole delegation with nothing set up')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a completion script for a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a manual page')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'nisse;delegate' {
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Read the brief from FILE')
            [CompletionResult]::new('--check', '--check', [CompletionResultType]::ParameterName, 'Require CMD to exit with 0; repeatable [check.commands: none]')
            [CompletionResult]::new('--branch', '--branch', [CompletionResultType]::ParameterName, 'Name the branch [nisse/<task>-<words of the brief>]')
            [CompletionResult]::new('--base', '--base', [CompletionResultType]::ParameterName, 'Start from this commit, without unfinished work [the checkout as it is]')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Ask this model [roles.delegate]')
            [CompletionResult]::new('--max-turns', '--max-turns', [CompletionResultType]::ParameterName, 'Allow so many replies [delegate.max_turns: 30]')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'Allow so many tokens, input of every turn and output [delegate.max_tokens: 1500000]')
            [CompletionResult]::new('--max-time', '--max-time', [CompletionResultType]::ParameterName, 'Allow so much active time [delegate.max_time: 15m]')
            [CompletionResult]::new('--max-cost', '--max-cost', [CompletionResultType]::ParameterName, 'Allow so many US dollars, such as 2.50 [delegate.max_cost: none]')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--trust-project', '--trust-project', [CompletionResultType]::ParameterName, 'Run the checks that the repository''s nisse.toml names')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;resume' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--rollback', '--rollback', [CompletionResultType]::ParameterName, 'Put the files back to the last checkpoint, and go on')
            [CompletionResult]::new('--keep', '--keep', [CompletionResultType]::ParameterName, 'Keep what is in the worktree, and go on')
            [CompletionResult]::new('--drop', '--drop', [CompletionResultType]::ParameterName, 'Give the task up, as `nisse drop` does')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;apply' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--commit', '--commit', [CompletionResultType]::ParameterName, 'Make a commit of yours of each commit of the task')
            [CompletionResult]::new('--squash', '--squash', [CompletionResultType]::ParameterName, 'Make one commit of yours of it')
            [CompletionResult]::new('--merge', '--merge', [CompletionResultType]::ParameterName, 'Merge the task''s branch with a merge commit of yours')
            [CompletionResult]::new('--abort', '--abort', [CompletionResultType]::ParameterName, 'Put back what was applied and is not committed')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;drop' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;log' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--diff', '--diff', [CompletionResultType]::ParameterName, 'Show what the task changed, as a patch that `git apply` takes')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;models' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;doctor' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;demo' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;completions' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;man' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'Work in the repository at PATH instead of the current directory')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Use colour: auto, always or never')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read settings from FILE instead of your own file [env: NISSE_CONFIG]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Keep log and worktrees in DIR [env: NISSE_STATE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Tell only results and errors')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'Never ask anything')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'nisse;help' {
            [CompletionResult]::new('delegate', 'delegate', [CompletionResultType]::ParameterValue, 'Run one bounded task on a branch of its own')
            [CompletionResult]::new('resume', 'resume', [CompletionResultType]::ParameterValue, 'Go on with a task that was cut off')
            [CompletionResult]::new('apply', 'apply', [CompletionResultType]::ParameterValue, 'Bring the work of a finished task into your checkout')
            [CompletionResult]::new('drop', 'drop', [CompletionResultType]::ParameterValue, 'Give a task up')
            [CompletionResult]::new('log', 'log', [CompletionResultType]::ParameterValue, 'List the tasks of this checkout, or the events of one')
            [CompletionResult]::new('models', 'models', [CompletionResultType]::ParameterValue, 'List the models that the proxy offers to this key')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check everything that a run needs')
            [CompletionResult]::new('demo', 'demo', [CompletionResultType]::ParameterValue, 'Watch a whole delegation with nothing set up')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a completion script for a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a manual page')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'nisse;help;delegate' {
            break
        }
        'nisse;help;resume' {
            break
        }
        'nisse;help;apply' {
            break
        }
        'nisse;help;drop' {
            break
        }
        'nisse;help;log' {
            break
        }
        'nisse;help;models' {
            break
        }
        'nisse;help;doctor' {
            break
        }
        'nisse;help;demo' {
            break
        }
        'nisse;help;completions' {
            break
        }
        'nisse;help;man' {
            break
        }
        'nisse;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
