# shellcheck shell=bash
# A cluster as a whole: its directory, its settings, its start and stop.

# Where a clone's cluster is when no --dir is given: one for each clone and user.
cluster_default_dir() {
	local key
	key=$(printf '%s' "$WLB_ROOT" | cksum)
	printf '%s/wlb-%s-%s' "${TMPDIR:-/tmp}" "$(id -u)" "${key%% *}"
}

# The longest socket below it is spool-nNN/NN_JOBID.4294967291; the kernel allows 107 characters.
CLUSTER_DIR_MAX=64

# What this process has made: the path at which it makes the directory, and the device and inode of that directory.
CLUSTER_ASIDE='' CLUSTER_OURS=''

# cluster_create: the directory, and etc/cluster.conf with what the other verbs need to know.
cluster_create() {
	local file
	for file in "$WLBD" "$BUILD_DIR/bin/wlb" "$BUILD_DIR/lib/spank_wlb.so"; do
		[[ -e $file ]] || fail_usage "there is no $file; build it first: scripts/build"
	done
	((${#CLUSTER_DIR} <= CLUSTER_DIR_MAX)) ||
		fail_usage "$CLUSTER_DIR has ${#CLUSTER_DIR} characters; sockets in it need at most $CLUSTER_DIR_MAX: choose a" \
			"shorter --dir or TMPDIR"
	cluster_make_dir ||
		fail_usage "cannot make $CLUSTER_DIR: $(cluster_exists && printf 'a cluster is there already, stop it first' ||
			printf 'it exists, or the directory above it does not or is not writable')"
	PORT_BASE=$(ports_reserve "$CLUSTER_DIR")
	{
		printf 'NODES=%q\nPORT_BASE=%q\nSLURM_PREFIX=%q\nBUILD_DIR=%q\nWLBD=%q\nNETNS=%q\nLINK_MBIT=%q\nCGROUP=%q\n' \
			"$NODES" "$PORT_BASE" "$SLURM_PREFIX" "$BUILD_DIR" "$WLBD" "$NETNS" "$LINK_MBIT" "$CGROUP"
	} > "$CLUSTER_DIR/etc/cluster.conf"
}

# Made under another name and renamed: it appears together with the pid of the process that starts it, for `stop`; and
# after a signal at any moment this process can tell whether the directory is its own. mv -n may succeed without
# moving anything.
cluster_make_dir() {
	CLUSTER_ASIDE=$CLUSTER_DIR.start-$$
	mkdir -m 755 "$CLUSTER_ASIDE" 2> /dev/null &&
		mkdir "$CLUSTER_ASIDE"/{etc,log,run} &&
		printf '%s %s\n' $$ "$(process_start_time $$)" > "$CLUSTER_ASIDE/run/start.pid" &&
		CLUSTER_OURS=$(directory_identity "$CLUSTER_ASIDE") &&
		mv -nT "$CLUSTER_ASIDE" "$CLUSTER_DIR" 2> /dev/null &&
		cluster_ours
}

directory_identity() { stat -c %d:%i "$1" 2> /dev/null; }

# Whether the directory is the one that this process made.
cluster_ours() { [[ -n $CLUSTER_OURS && $(directory_identity "$CLUSTER_DIR") == "$CLUSTER_OURS" ]]; }

# Cleans up after an incomplete start, or after a run.
cluster_abandon() {
	[[ -z $CLUSTER_ASIDE ]] || rm -rf "$CLUSTER_ASIDE"
	! cluster_ours || cluster_stop
}

cluster_exists() { [[ -d $CLUSTER_DIR/etc && -d $CLUSTER_DIR/run ]]; }

cluster_load() {
	[[ -f $CLUSTER_DIR/etc/cluster.conf ]] ||
		fail "no cluster in $CLUSTER_DIR; start one: scripts/cluster start"
	# shellcheck source=/dev/null
	. "$CLUSTER_DIR/etc/cluster.conf"
}

# Where slurmctld and wlbd, and where the slurmd of node nN, are reached.
controller_address() {
	if [[ -n $NETNS ]]; then netns_address management "$NETNS_CONTROLLER"; else printf 127.0.0.1; fi
}
node_address() {
	if [[ -n $NETNS ]]; then netns_address management "$1"; else printf 127.0.0.1; fi
}

# NAME=VALUE lines: what a user's shell needs to use the cluster. Its nodes share this host's CPUs, so that a rank which
# waits must let the others compute: the last two lines. PMIx asks for the host's devices in each slurmstepd, which takes long in a
# virtual machine and of which nothing is used.
cluster_env() {
	cat <<- END
		WLB_CLUSTER_DIR=$CLUSTER_DIR
		SLURM_CONF=$CLUSTER_DIR/etc/slurm.conf
		WLB_CONF=$CLUSTER_DIR/etc/wlb.conf
		WLBD_CONF=$CLUSTER_DIR/etc/wlbd.conf
		WLB_COORDINATOR=$(wlbd_address)
		WLB_COORDINATOR_USER=$EUID
		WLB_MUNGE_SOCKET=$CLUSTER_DIR/$MUNGE_SOCKET_NAME
		PGHOST=$CLUSTER_DIR/pg
		PGPORT=5432
		PGDATABASE=$POSTGRES_DATABASE
		PGUSER=$POSTGRES_USER
		HWLOC_COMPONENTS=-pci,-linux:pci
		OMPI_MCA_pml=ob1
		OMPI_MCA_btl=self,tcp
		OMPI_MCA_btl_tcp_if_include=$([[ -n $NETNS ]] && printf data || printf lo)
		OMPI_MCA_mpi_yield_when_idle=1
		OMP_WAIT_POLICY=passive
	END
}

# Programs of the build, of Slurm and of PostgreSQL, before those of the system: Debian's psql is a script that starts that one.
cluster_path() { printf '%s' "$BUILD_DIR/bin:${SLURM_PREFIX:+$SLURM_PREFIX/bin:$SLURM_PREFIX/sbin:}$(postgres_bin):"; }

# Runs a command, or a function of ours, in that environment.
cluster_run_env() (
	local line
	while read -r line; do
		export "${line?}"
	done < <(cluster_env)
	PATH=$(cluster_path)$PATH
	"$@"
)

cluster_start() {
	[[ -z $NETNS ]] || netns_check
	[[ -z $CGROUP ]] || cgroup_check
	cluster_create
	[[ -z $NETNS ]] || netns_create
	[[ -z $CGROUP ]] || cgroup_create
	munge_start
	postgres_init
	slurm_configure
	wlbd_configure
	munge_wait
	slurm_start
	postgres_start
	wlbd_start
	slurm_wait
	rm "$CLUSTER_DIR/run/start.pid"
}

# Ends a start that another process is executing; that process cleans up.
cluster_abort_start() {
	daemon_signal start TERM
	wait_for 20 daemon_gone start || fail "the start in progress (pid $(daemon_pid start)) does not end; try again"
}

# Ends every process and removes the directory, also after an incomplete start.
cluster_stop() {
	if [[ -f $CLUSTER_DIR/etc/cluster.conf ]]; then
		cluster_load
	fi
	local name names=(wlbd munged slurmctld postgres initdb)
	daemon_signal wlbd TERM
	daemon_signal postgres INT
	daemon_signal slurmctld KILL
	kill_all slurm_node_processes
	for name in "${names[@]}"; do
		daemon_stop "$name" TERM 5
	done
	kill_all processes_with "WLB_CLUSTER_DAEMON=$CLUSTER_DIR"
	[[ -z $NETNS || -z ${PORT_BASE:-} ]] || netns_remove
	[[ -z $CGROUP || -z ${PORT_BASE:-} ]] || cgroup_remove
	ports_release "$CLUSTER_DIR"
	rm -rf "$CLUSTER_DIR"
}

# Prints one line for each daemon; returns 3, as systemctl does, if one is missing.
cluster_status() {
	local i name pid result=0 names=(munged postgres slurmctld wlbd)
	for ((i = 1; i <= NODES; i++)); do
		names+=("slurmd-n$i")
	done
	for name in "${names[@]}"; do
		if pid=$(daemon_pid "$name"); then
			printf '%-12s running  pid %d\n' "$name" "$pid"
		else
			printf '%-12s stopped\n' "$name"
			result=3
		fi
	done
	printf '%-12s %s\n' directory "$CLUSTER_DIR" wlbd "http://$(wlbd_address)"
	return $result
}
