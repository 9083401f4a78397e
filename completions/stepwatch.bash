# Completion of the stepwatch command for bash.

_stepwatch()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} i
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "run report compare history export stats doctor help --help --version" -- "$current")
        return
    fi

    case $command in
    help)
        mapfile -t COMPREPLY < <(compgen -W "run report compare history export stats doctor" -- "$current")
        ;;
    run)
        # After -- the words are those of another command, after a script or module they are its own.
        for ((i = 2; i < COMP_CWORD; i++)); do
            case ${COMP_WORDS[i]} in
            -o | --out | --name | --config | --set | --lines | =)
                ((i++))
                continue
                ;;
            -m | --module)
                ((i + 1 < COMP_CWORD)) || continue
                compopt -o default 2>/dev/null
                return
                ;;
            -*) ;;
            *)
                compopt -o default 2>/dev/null
                return
                ;;
            esac
            if [[ ${COMP_WORDS[i]} == -- ]]; then
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                elif declare -F _comp_command_offset >/dev/null; then
                    _comp_command_offset $((i + 1))
                else
                    compopt -o default 2>/dev/null
                fi
                return
            fi
        done
        case $previous in
        -o | --out)
            compopt -o dirnames 2>/dev/null
            return
            ;;
        --set)
            compopt -o nospace 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -S = -W "brief clock enabled events functions gpu history hot_dir io keep_first \
                keep_last keep_worst lines loader max_mb memory memory_native memory_sample_kb modules monitor_interval_s monitor_pss_s \
                name nvml operators out phases policy progress quiet report runs_dir sampler_hz schedule step_usage" \
                -- "$current")
            return
            ;;
        --config)
            compopt -o default 2>/dev/null
            return
            ;;
        --name | --lines) return ;;
        -m | --module)
            # Modules of this folder; those of the environment only Python knows.
            mapfile -t COMPREPLY < <(compgen -f -X '!*.py' -- "$current" | sed 's/\.py$//')
            return
            ;;
        esac
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-o --out --name --config --set --functions --lines \
                --operators --memory --io --no-report -m --module --help --" -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -d -- "$current"; compgen -f -X '!*.py' -- "$current")
            compopt -o filenames 2>/dev/null
        fi
        ;;
    report)
        case $previous in
        --color)
            mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current")
            return
            ;;
        --csv)
            mapfile -t COMPREPLY < <(compgen -d -- "$current")
            compopt -o filenames 2>/dev/null
            return
            ;;
        --html | -o | --out)
            compopt -o default 2>/dev/null
            return
            ;;
        --top | --width) return ;;
        esac
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json --markdown --html --csv -o --out --top --ascii --unicode --color --width \
                --help" -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -d -- "$current"; compgen -f -X '!*.stepwatch' -- "$current")
            compopt -o filenames 2>/dev/null
        fi
        ;;
    history)
        case $previous in
        --color)
            mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current")
            return
            ;;
        --limit | --program | --width) return ;;
        esac
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json --limit --program --rebuild --ascii --unicode \
                --color --width --help" -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -d -- "$current")
            compopt -o filenames 2>/dev/null
        fi
        ;;
    compare)
        case $previous in
        --color)
            mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current")
            return
            ;;
        --threshold | --top | --width) return ;;
        esac
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json --threshold --top --ascii --unicode --color \
                --width --help" -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            compopt -o filenames 2>/dev/null
        fi
        ;;
    export)
        case $previous in
        --to)
            mapfile -t COMPREPLY < <(compgen -W "chrome collapsed json kineto pstats speedscope tensorboard" -- "$current")
            return
            ;;
        -o | --out)
            compopt -o default 2>/dev/null
            return
            ;;
        esac
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--to -o --out --steps --samples --waiting --lines --threads --sections \
                --memory --help" -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -d -- "$current"; compgen -f -X '!*.stepwatch' -- "$current")
            compopt -o filenames 2>/dev/null
        fi
        ;;
    stats)
        case $previous in
        --sort)
            mapfile -t COMPREPLY < <(compgen -W "cumulative self calls pcalls errors name file" -- "$current")
            return
            ;;
        --top | --width) return ;;
        esac
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json --sort --top --width --help" -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            compopt -o filenames 2>/dev/null
        fi
        ;;
    doctor)
        if [[ $previous == --config ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            compopt -o filenames 2>/dev/null
            return
        fi
        mapfile -t COMPREPLY < <(compgen -W "--json --config --clean --help" -- "$current")
        ;;
    esac
}

complete -F _stepwatch stepwatch
