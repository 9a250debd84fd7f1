# shellcheck shell=bash
# Completion of wlb's commands and options in bash; installed as share/bash-completion/completions/wlb.

_wlb() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words='run runs show flush db doctor data help --help --version'
	else
		case $before in
		--state) words='starting running restarting complete failed out_of_nodes cancelled' ;;
		--spool-dir | --save-dir)
			mapfile -t COMPREPLY < <(compgen -d -- "$word")
			return
			;;
		--config)
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
			;;
		*)
			case ${COMP_WORDS[1]} in
			run) words='--tasks-per-node --spool-dir --max-restarts --wait --srun-args --help' ;;
			runs) words='--user --state --limit --json --help' ;;
			show) words='--json --steps --help' ;;
			flush) words='--timeout --help' ;;
			db) words='migrate status --database --config --help' ;;
			doctor) words='--save-dir --json --help' ;;
			data) words='build info' ;;
			help) words='run runs show flush db doctor data' ;;
			esac
			;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _wlb wlb
