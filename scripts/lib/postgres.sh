# shellcheck shell=bash
# The cluster's own PostgreSQL: reached through the socket in CLUSTER_DIR/pg only, which nobody but its owner may
# enter. PostgreSQL refuses to run as root: then it runs as the account postgres or, where there is none, nobody.

POSTGRES_DATABASE=wlb
POSTGRES_USER=wlb

postgres_bin() {
	local dirs=(/usr/lib/postgresql/*/bin)
	[[ -x ${dirs[-1]}/postgres ]] || fail "PostgreSQL is not installed; run scripts/setup"
	printf '%s' "${dirs[-1]}"
}

# postgres_account FOLDER: sets POSTGRES_AS, the words to put before a command that PostgreSQL's account shall run; makes the folder,
# which nobody else may enter.
postgres_account() {
	(umask 077 && mkdir -p "$1")
	chmod 700 "$1"
	POSTGRES_AS=()
	((EUID == 0)) || return 0
	local account=nobody
	getent passwd postgres > /dev/null && account=postgres
	POSTGRES_AS=(setpriv --reuid="$account" --regid="$(id -g "$account")" --clear-groups)
	chown "$account" "$1"
	"${POSTGRES_AS[@]}" test -x "$1" ||
		fail_usage "${1%/*} cannot be entered by the account $account, which runs PostgreSQL;" \
			"choose another --dir or TMPDIR"
}

# postgres_initdb FOLDER: prints the words of the command that makes an empty database there, each ended by a zero byte.
postgres_initdb() {
	printf '%s\0' "$(postgres_bin)/initdb" -D "$1" -A trust -U "$POSTGRES_USER" --no-sync -E UTF8 --locale=C.UTF-8
}

# Starts making the database, of which WLB_CLUSTER_DATABASE may name one to copy; postgres_start waits for it.
postgres_init() {
	local make model=${WLB_CLUSTER_DATABASE:-}
	postgres_account "$CLUSTER_DIR/pg"
	mapfile -d '' -t make < <(postgres_initdb "$CLUSTER_DIR/pg/data")
	if [[ -n $model ]] && "${POSTGRES_AS[@]}" test -r "$model/PG_VERSION"; then
		make=(cp -a "$model" "$CLUSTER_DIR/pg/data")
	fi
	daemon_start initdb "${POSTGRES_AS[@]}" env -C "$CLUSTER_DIR/pg" "${make[@]}"
}

# postgres_make_model FOLDER WLB: makes FOLDER/data, the database that WLB_CLUSTER_DATABASE names, for many clusters: with the schema of
# the command WLB, which `wlb db migrate` then finds there, and no runs.
postgres_make_model() {
	local make server
	postgres_account "$1"
	mapfile -d '' -t make < <(postgres_initdb "$1/data")
	"${POSTGRES_AS[@]}" env -C "$1" "${make[@]}" > /dev/null
	server=("${POSTGRES_AS[@]}" env -C "$1" "$(postgres_bin)/pg_ctl" --pgdata "$1/data" --wait --silent)
	"${server[@]}" --log "$1/log" --options "-c listen_addresses= -c unix_socket_directories=$1 -c port=5432 -c fsync=off" start
	(umask 077 && echo "database = host=$1 port=5432 dbname=$POSTGRES_DATABASE user=$POSTGRES_USER" > "$1/wlbd.conf")
	"$(postgres_bin)/createdb" -h "$1" -p 5432 -U "$POSTGRES_USER" "$POSTGRES_DATABASE" && WLBD_CONF=$1/wlbd.conf "$2" db migrate > /dev/null || {
		"${server[@]}" --mode immediate stop
		fail "the database of the tests' clusters could not be made; why is above"
	}
	"${server[@]}" --mode fast stop
}

postgres_start() {
	wait_for 60 daemon_gone initdb || fail "initdb did not end within 60 s"
	[[ -f $CLUSTER_DIR/pg/data/global/pg_control ]] || {
		daemon_log initdb
		fail "initdb failed: its last lines are above"
	}
	postgres_account "$CLUSTER_DIR/pg"
	# No fsync and no POSIX shared memory: the data live as long as the cluster and leave nothing in /dev/shm.
	daemon_start postgres "${POSTGRES_AS[@]}" env -C "$CLUSTER_DIR/pg" "$(postgres_bin)/postgres" \
		-D "$CLUSTER_DIR/pg/data" -c listen_addresses= -c unix_socket_directories="$CLUSTER_DIR/pg" -c port=5432 \
		-c fsync=off -c shared_buffers=16MB -c dynamic_shared_memory_type=mmap -c max_connections=50
	wait_for 40 postgres_ready || {
		daemon_log postgres
		fail "PostgreSQL did not start: its last lines are above"
	}
	if [[ -z $(postgres_query postgres "SELECT 1 FROM pg_database WHERE datname = '$POSTGRES_DATABASE'") ]]; then
		postgres_query postgres "CREATE DATABASE $POSTGRES_DATABASE" > /dev/null
	fi
}

postgres_ready() { "$(postgres_bin)/pg_isready" -q -h "$CLUSTER_DIR/pg" -p 5432 -U "$POSTGRES_USER" -d postgres; }

# postgres_query DATABASE SQL
postgres_query() {
	"$(postgres_bin)/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$CLUSTER_DIR/pg" -p 5432 -U "$POSTGRES_USER" -d "$1" -c "$2"
}

# SIGINT: sessions are ended, data written.
postgres_stop() { daemon_stop postgres INT 10; }
