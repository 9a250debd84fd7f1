# shellcheck shell=bash
# The cluster's own munged: key and socket in CLUSTER_DIR/munge.

MUNGE_SOCKET_NAME=munge/munge.sock

munge_start() {
	local dir=$CLUSTER_DIR/munge
	mkdir -p "$dir"
	[[ -f $dir/munge.key ]] || (umask 077 && head -c 128 /dev/urandom > "$dir/munge.key")
	daemon_start munged "$(munge_program)" --foreground --num-threads=4 --key-file="$dir/munge.key" \
		--socket="$CLUSTER_DIR/$MUNGE_SOCKET_NAME" --pid-file="$dir/munged.pid" --seed-file="$dir/munged.seed" \
		--log-file="$dir/munged.log"
}

munge_program() { PATH=$PATH:/usr/sbin command -v munged || fail "munged is not installed; run scripts/setup"; }

munge_wait() {
	wait_for 30 munge_ready || {
		daemon_log munged
		fail "munged did not start: its last lines are above"
	}
}

munge_ready() { munge -n -S "$CLUSTER_DIR/$MUNGE_SOCKET_NAME" > /dev/null 2>&1; }

munge_stop() { daemon_stop munged TERM 3; }
