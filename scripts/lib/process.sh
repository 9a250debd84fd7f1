# shellcheck shell=bash
# Processes of a cluster: each is known by its pid and start time in run/NAME.pid, so that a pid the
# kernel has given to somebody else is never taken for ours. Expects CLUSTER_DIR.

# Start time of a process in clock ticks since boot; fails when it is gone or a zombie.
process_start_time() {
	local stat
	{ read -r stat < "/proc/$1/stat"; } 2> /dev/null || return 1
	stat=${stat##*) } # the name may hold blanks and parentheses
	# shellcheck disable=SC2086 # the fields are numbers
	set -- $stat
	[[ $1 != Z && $1 != X ]] && printf '%s' "${20}"
}

# Whether a process exists and is not stopped.
process_runs() {
	local stat
	{ read -r stat < "/proc/$1/stat"; } 2> /dev/null || return 1
	[[ ${stat##*) } != [TtZX]* ]]
}

# daemon_start NAME COMMAND...: in a session of its own, out of reach of the terminal's Ctrl-C. Output goes to
# log/NAME.out. A shell starts background commands with SIGINT ignored: daemons and their jobs must not inherit that.
daemon_start() {
	local name=$1
	shift
	WLB_CLUSTER_DAEMON=$CLUSTER_DIR setsid env --default-signal=INT,QUIT "$@" \
		< /dev/null >> "$CLUSTER_DIR/log/$name.out" 2>&1 &
	local pid=$!
	printf '%s %s\n' "$pid" "$(process_start_time "$pid")" > "$CLUSTER_DIR/run/$name.pid"
	disown "$pid"
}

# daemon_pid NAME: prints the pid; fails when it does not run.
daemon_pid() {
	local pid start
	{ read -r pid start < "$CLUSTER_DIR/run/$1.pid"; } 2> /dev/null || return 1
	[[ $(process_start_time "$pid") == "$start" ]] && printf '%s\n' "$pid"
}

daemon_gone() { ! daemon_pid "$1" > /dev/null; }

# daemon_log NAME: the end of its output, for the message of a failed start.
daemon_log() { tail -n 15 "$CLUSTER_DIR/log/$1.out" "$CLUSTER_DIR/log/$1.log" >&2 2> /dev/null; }

# daemon_signal NAME SIGNAL: does nothing if it does not run.
daemon_signal() {
	local pid
	if pid=$(daemon_pid "$1"); then
		kill -s "$2" "$pid" 2> /dev/null || true
	fi
}

# daemon_stop NAME SIGNAL SECONDS: SIGNAL first, SIGKILL if it still runs. A stopped process handles a signal only
# once it continues.
daemon_stop() {
	daemon_signal "$1" "$2"
	daemon_signal "$1" CONT
	if ! wait_for "$3" daemon_gone "$1"; then
		daemon_signal "$1" KILL
		# A killed process ends only once what it writes is on the disk, which may be busy.
		wait_for 60 daemon_gone "$1" || fail "$1 (pid $(daemon_pid "$1")) does not end even by SIGKILL"
	fi
	rm -f "$CLUSTER_DIR/run/$1.pid"
}

# processes_with LINES...: pids whose environment holds one NAME=VALUE of each LINES. Only those we may read, which are all of ours.
processes_with() {
	local pattern files=(/proc/[0-9]*/environ)
	for pattern in "$@"; do
		mapfile -t files < <(grep -lzsFx -e "$pattern" "${files[@]}" /dev/null)
		((${#files[@]})) || return 0
	done
	local file
	for file in "${files[@]}"; do
		file=${file#/proc/}
		printf '%s\n' "${file%/environ}"
	done
}

# Adds to the pids on standard input all of their descendants.
with_descendants() {
	local -A children=()
	local pids stat file
	mapfile -t pids
	for file in /proc/[0-9]*/stat; do
		{ read -r stat < "$file"; } 2> /dev/null || continue
		local pid=${stat%% *}
		stat=${stat##*) }
		stat=${stat#* }
		children[${stat%% *}]+=" $pid"
	done
	local i
	for ((i = 0; i < ${#pids[@]}; i++)); do
		printf '%s\n' "${pids[i]}"
		# shellcheck disable=SC2206 # pids are numbers
		pids+=(${children[${pids[i]}]:-})
	done
}

# kill_all LISTER ARGUMENT...: SIGKILL to every pid that LISTER prints, until it prints none. They are stopped before, so that none
# lives to see that another has ended.
kill_all() {
	wait_for 30 kill_round "$@" || fail "still running after SIGKILL: $("$@" | tr '\n' ' ')"
}

kill_round() {
	local pids
	mapfile -t pids < <("$@")
	((${#pids[@]})) || return 0
	kill -STOP "${pids[@]}" 2> /dev/null || true
	kill -KILL "${pids[@]}" 2> /dev/null || true
	return 1
}
