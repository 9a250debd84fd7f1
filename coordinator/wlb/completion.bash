# shellcheck shell=bash
# Completion of wlb's commands and options in bash; installed as share/bash-completion/completions/wlb.

_wlb() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
	local planned='--model --nodes --gpus-per-node --gpu --seq-length --global-batch-size --lengths --topology --down'
	planned+=' --max-length-ratio --zero-stage'
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words='run runs show flush db doctor pack shard plan sim data help --help --version'
	else
		case $before in
		--state) words='starting running restarting complete failed out_of_nodes cancelled' ;;
		--spool-dir | --save-dir)
			mapfile -t COMPREPLY < <(compgen -d -- "$word")
			return
			;;
		--strategy)
			words='balanced greedy fixed plain'
			[[ ${COMP_WORDS[1]} != shard ]] || words='per-document per-sequence adaptive dynamic'
			;;
		--recompute) words='none selective full' ;;
		--gpu) words='A100 B200 CPU H100 H200 MI300X' ;;
		--config | --lengths | --model | --topology | --dump | --svg)
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
			;;
		*)
			case ${COMP_WORDS[1]} in
			run) words='--tasks-per-node --spool-dir --max-restarts --wait --srun-args --help' ;;
			runs) words='--user --state --limit --json --help' ;;
			show) words='--json --steps --help' ;;
			flush) words='--timeout --wait --refused --quiet --help' ;;
			db) words='migrate status --database --config --help' ;;
			doctor) words='--save-dir --json --help' ;;
			pack)
				words='--seq-length --micro-batches --lengths --model --strategy --max-length-ratio'
				words+=' --max-delay --drain --json --dump --svg --help'
				;;
			shard) words='--cp --dp --lengths --seq-length --strategy --model --gpu --json --dump --help' ;;
			plan) words="$planned --top --json --help" ;;
			sim)
				words="$planned --layout --interleave --recompute --strategies --steps --slow --node-mtbf"
				words+=' --checkpoint-time --restart-time --json --svg --help'
				;;
			data) words='build info' ;;
			help) words='run runs show flush db doctor pack shard plan sim data' ;;
			esac
			;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _wlb wlb
