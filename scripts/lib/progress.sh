# shellcheck shell=bash
# One line that shows how far a long step is: redrawn in place on a terminal, every tenth elsewhere.

# progress_show PERCENT TEXT
progress_show() {
	local width=30 filled
	if [[ -t 2 ]]; then
		filled=$(($1 * width / 100))
		printf '\r  [%s%s] %3d%%  %-40.40s' "$(printf '%*s' "$filled" '' | tr ' ' '#')" \
			"$(printf '%*s' $((width - filled)) '' | tr ' ' .)" "$1" "$2" >&2
	elif (($1 / 10 != ${PROGRESS_TENTH:--1})); then
		PROGRESS_TENTH=$(($1 / 10))
		printf '  %3d%%  %s\n' "$1" "$2" >&2
	fi
}

progress_end() {
	unset PROGRESS_TENTH
	if [[ -t 2 ]]; then
		printf '\r%*s\r' 84 '' >&2
	fi
}
