# shellcheck shell=bash
# slurmctld and the slurmds of the cluster, all on 127.0.0.1 without --netns. A comment beside each unusual line of
# slurm.conf says why it is there.

CPUS_PER_NODE=8
GPUS_PER_NODE=4

slurm_program() {
	PATH=${SLURM_PREFIX:+$SLURM_PREFIX/sbin:}$PATH:/usr/sbin command -v "$1" ||
		fail "$1 is not installed; run scripts/setup"
}

# Runs one of Slurm's own commands on this cluster.
slurm_command() { cluster_run_env "$@"; }

slurm_configure() {
	local i
	mkdir -p "$CLUSTER_DIR/slurm"
	for ((i = 1; i <= NODES; i++)); do
		mkdir -m 1777 "$CLUSTER_DIR/tmp-n$i"
	done
	slurm_gpus_make
	[[ -z $TOPOLOGY ]] || cp "$TOPOLOGY" "$CLUSTER_DIR/etc/topology.conf"
	slurm_conf > "$CLUSTER_DIR/etc/slurm.conf"
	# Without the ring, PMIx_Fence without data is no barrier on fewer nodes than TreeWidth, and MPI_Init may crash.
	printf 'PMIxCollFence=ring\nPMIxTimeout=10\n' > "$CLUSTER_DIR/etc/mpi.conf"
	slurm_cgroup_conf > "$CLUSTER_DIR/etc/cgroup.conf"
	printf 'required %s coordinator=%s coordinator_user=%s munge_socket=%s%s%s\n' "$BUILD_DIR/lib/spank_wlb.so" \
		"$(wlbd_address)" "$EUID" "$CLUSTER_DIR/$MUNGE_SOCKET_NAME" "$(slurm_agent_argument)" \
		"$(slurm_delivery_arguments)" > "$CLUSTER_DIR/etc/plugstack.conf"
}

# A build of an earlier release has no agent and delivers nothing at a job's end: its plugin does not know the arguments.
slurm_agent_argument() {
	local agent=$BUILD_DIR/libexec/wlb/wlb-agent
	[[ ! -x $agent ]] || printf ' agent=%s' "$agent"
}

slurm_delivery_arguments() {
	local wlb=$BUILD_DIR/bin/wlb
	if "$wlb" help flush 2> /dev/null | grep -q -e --wait; then
		printf ' state_dir=%s wlb=%s' "$CLUSTER_DIR/state" "$wlb"
	fi
}

# Stand-in GPUs are device nodes that nothing opens; a user who may not make one gets a cluster without GPUs.
slurm_gpus_make() {
	local i
	mkdir -p "$CLUSTER_DIR/dev"
	for ((i = 0; i < GPUS_PER_NODE; i++)); do
		mknod -m 666 "$CLUSTER_DIR/dev/gpu$i" c 1 3 2> /dev/null || return 0
	done
	{
		printf 'AutoDetect=off\n'
		for ((i = 1; i <= NODES; i++)); do
			printf 'NodeName=n%d Name=gpu %s File=%s/dev/gpu[0-%d]\n' "$i" "$(slurm_gpu_type "$i" Type=)" "$CLUSTER_DIR" \
				$((GPUS_PER_NODE - 1))
		done
	} > "$CLUSTER_DIR/etc/gres.conf"
}

# slurm_gpu_type N [BEFORE [AFTER]]: the type of the GPUs of node nN between these words; nothing where it has no type.
slurm_gpu_type() {
	local types
	IFS=, read -r -a types <<< "$GPU_TYPES"
	[[ -z ${types[$1 - 1]:-} ]] || printf '%s%s%s' "${2:-}" "${types[$1 - 1]}" "${3:-}"
}

# Without --cgroup nothing here uses cgroups, but slurmd loads a plugin for them, and the default one fails where they are
# not mounted.
slurm_cgroup_conf() {
	local series
	series=$(slurm_series "$SLURM_PREFIX")
	if [[ -n $CGROUP ]]; then
		cgroup_conf
	elif ((10#${series//./} >= 2405)); then
		printf 'CgroupPlugin=disabled\n'
	else
		printf 'CgroupPlugin=cgroup/v1\n'
	fi
}

# The daemons and srun listen on the address of the host's name when they may not listen on all: on 127.0.0.1 where
# that is its address. Elsewhere they listen on all addresses, and MUNGE alone keeps strangers out; so they do with
# --netns, where the host's name is not the address of the management network.
slurm_listen() {
	local address
	[[ -z $NETNS ]] || return 0
	read -r address _ < <(getent ahostsv4 "$(uname -n)") || true
	if [[ ${address:-} == 127.0.0.1 ]]; then
		printf 'CommunicationParameters=NoInAddrAny,NoCtldInAddrAny'
	fi
}

slurm_conf() {
	local user gres=
	user=$(id -un)
	[[ ! -f $CLUSTER_DIR/etc/gres.conf ]] || gres=GresTypes=gpu
	cat <<- END
		ClusterName=local
		SlurmctldHost=localhost($(controller_address))
		SlurmctldPort=$PORT_BASE
		SlurmdPort=$((PORT_BASE + 2))
		SlurmUser=$user
		SlurmdUser=$user
		AuthType=auth/munge
		# cred_expire is also how long a requeued job waits: 120 s by default.
		AuthInfo=socket=$CLUSTER_DIR/$MUNGE_SOCKET_NAME,cred_expire=5
		CredType=cred/munge
		StateSaveLocation=$CLUSTER_DIR/slurm
		SlurmdSpoolDir=$CLUSTER_DIR/spool-%n
		SlurmctldPidFile=$CLUSTER_DIR/slurm/slurmctld.pid
		SlurmdPidFile=$CLUSTER_DIR/slurm/slurmd-%n.pid
		SlurmctldLogFile=$CLUSTER_DIR/log/slurmctld.log
		SlurmdLogFile=$CLUSTER_DIR/log/slurmd-%n.log
		# PMIx puts its sockets there: nodes that share a host must not share them.
		TmpFS=$CLUSTER_DIR/tmp-%n
		MailProg=/bin/true
		# Without --cgroup none of these needs cgroups, which a container may not have.
		ProctrackType=proctrack/$([[ -n $CGROUP ]] && printf cgroup || printf linuxproc)
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		SwitchType=switch/none
		MpiDefault=none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SchedulerType=sched/backfill
		SchedulerParameters=sched_interval=1,bf_interval=1
		# Nodes with more CPUs than the host has.
		SlurmdParameters=config_overrides
		ReturnToService=2
		SlurmctldTimeout=10
		# Longer than a node may be frozen without harm: wlbd probes it after silence_ms, 10 s.
		SlurmdTimeout=15
		InactiveLimit=0
		KillWait=2
		MinJobAge=300
		WaitTime=0
		TCPTimeout=2
		MessageTimeout=5
		BatchStartTimeout=10
		CompleteWait=0
		$gres
		${TOPOLOGY:+TopologyPlugin=topology/tree}
		PlugStackConfig=$CLUSTER_DIR/etc/plugstack.conf
		$(slurm_listen)
		$(slurm_conf_nodes "$gres")
		PartitionName=main Nodes=n[1-$NODES] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
	END
}

# slurm_conf_nodes GRES: a line for each node; with GPUs where GRES is not empty.
slurm_conf_nodes() {
	local i gpus=
	for ((i = 1; i <= NODES; i++)); do
		[[ -z $1 ]] || gpus=Gres=gpu:$(slurm_gpu_type "$i" '' :)$GPUS_PER_NODE
		printf 'NodeName=n%d NodeHostname=localhost NodeAddr=%s Port=%d CPUs=%d RealMemory=16000 %s State=UNKNOWN\n' \
			"$i" "$(node_address "$i")" $((PORT_BASE + 2 + i)) $CPUS_PER_NODE "$gpus"
	done
}

slurm_start() {
	local i
	cluster_run_env daemon_start slurmctld "$(slurm_program slurmctld)" -D -c
	for ((i = 1; i <= NODES; i++)); do
		slurmd_start "$i"
	done
}

# slurmd_start N [OPTION...]: in the foreground, so that we know its pid.
slurmd_start() {
	local inside=() node=$1
	shift
	[[ -z $NETNS ]] || inside=(nsenter --net="/run/netns/$(netns_node "$node")" --)
	[[ -z $CGROUP ]] || inside+=(bash -c "$(declare -f cgroup_enter); cgroup_enter \"\$@\"" bash "$(cgroup_folder)" "$CLUSTER_DIR/cgroup" \
		"$BUILD_DIR/tests/unified_cgroup.so")
	cluster_run_env daemon_start "slurmd-n$node" "${inside[@]}" "$(slurm_program slurmd)" -D -N "n$node" "$@"
}

# slurmctld_restart: with the jobs and nodes that it has saved.
slurmctld_restart() {
	cluster_run_env daemon_start slurmctld "$(slurm_program slurmctld)" -D
	wait_for 30 slurmctld_answers || {
		daemon_log slurmctld
		fail "slurmctld did not start: its last lines are above"
	}
}

slurmctld_answers() { [[ $(slurm_command scontrol ping 2> /dev/null) == *" is UP"* ]]; }

# slurmd_restart N [OPTION...]: the steps on the node go on.
slurmd_restart() {
	slurmd_start "$@"
	wait_for 30 slurmd_listens "$1" || {
		daemon_log "slurmd-n$1"
		fail "slurmd of n$1 did not start: its last lines are above"
	}
}

slurmd_listens() { (exec 3<> "/dev/tcp/$(node_address "$1")/$((PORT_BASE + 2 + $1))") 2> /dev/null; }

slurm_wait() {
	wait_for 40 slurm_ready || {
		daemon_log slurmctld
		daemon_log slurmd-n1
		fail "Slurm did not come up: $(slurm_command sinfo -h -N -o '%N %T' 2>&1 | tr '\n' ';')" \
			"the last lines of slurmctld and of the first slurmd are above"
	}
}

slurm_ready() {
	local idle
	idle=$(slurm_command sinfo -h -t idle -o %D 2> /dev/null) && [[ $idle == "$NODES" ]]
}

# slurm_node_processes [N...]: pids of everything that runs on these nodes, by default on all: the slurmstepds, their tasks, and
# tasks that have lost their slurmstepd. A user's shell on the cluster is not included: it lacks SLURMD_NODENAME.
slurm_node_processes() {
	local node numbers=("$@")
	(($#)) || mapfile -t numbers < <(seq "$NODES")
	{
		for node in "${numbers[@]}"; do
			daemon_pid "slurmd-n$node" || true
		done
		slurm_node_stepds "${numbers[@]}"
		processes_with "SLURM_CONF=$CLUSTER_DIR/etc/slurm.conf" "$(printf 'SLURMD_NODENAME=n%s\n' "${numbers[@]}")"
	} | with_descendants | sort -un
}

# slurm_node_stepds N...: the slurmstepds of these nodes, which outlive their slurmd. Their environment is overwritten by their
# title, but they write to the log of their slurmd.
slurm_node_stepds() {
	local comms logs=() node
	mapfile -t comms < <(grep -lsx slurmstepd /proc/[0-9]*/comm)
	for node in "$@"; do
		[[ ! -e $CLUSTER_DIR/log/slurmd-n$node.log ]] || logs+=(-o -samefile "$CLUSTER_DIR/log/slurmd-n$node.log")
	done
	((${#comms[@]} && ${#logs[@]})) || return 0
	find -L "${comms[@]/%comm/fd}" -maxdepth 1 "${logs[@]:1}" 2> /dev/null | cut -d / -f 3 | sort -u
}

# slurm_node_kill N: everything of the node at once, as when its power fails. A slurmstepd that slurmd is just starting
# can be recognised only a moment later.
slurm_node_kill() {
	kill_all slurm_node_processes "$1"
	sleep 0.1
	kill_all slurm_node_processes "$1"
	rm -f "$CLUSTER_DIR/run/slurmd-n$1.pid"
}

# slurm_node_reboot N: also of a node that is dead already. Its /tmp is in memory and the spool folder on its disk. Slurm
# decides whether it uses the node again.
slurm_node_reboot() {
	slurm_node_kill "$1"
	rm -rf "$CLUSTER_DIR/tmp-n$1"/*
	sleep 2 # a node that boots is away for longer than wlbd needs to notice, also on a machine with much load
	slurmd_restart "$1" -b
}

# slurm_node_freeze N: until no process of it runs, since one may start another meanwhile. What is stopped is noted, since a process whose
# parent ends meanwhile is no longer known as one of the node's.
slurm_node_freeze() {
	wait_for 40 slurm_node_freeze_round "$1" || fail "n$1 still runs after SIGSTOP: $(slurm_node_running "$1" | tr '\n' ' ')"
}

slurm_node_freeze_round() {
	local pids
	mapfile -t pids < <(slurm_node_running "$1")
	((${#pids[@]})) || return 0
	printf '%s\n' "${pids[@]}" >> "$CLUSTER_DIR/run/frozen-n$1"
	kill -STOP "${pids[@]}" 2> /dev/null || true
	return 1
}

# Pids of the node that are not stopped.
slurm_node_running() {
	local pid
	while read -r pid; do
		! process_runs "$pid" || printf '%s\n' "$pid"
	done < <(slurm_node_processes "$1")
}

slurm_node_is_frozen() {
	local pid
	pid=$(daemon_pid "slurmd-n$1") && ! process_runs "$pid"
}

slurm_node_thaw() {
	local pids frozen=$CLUSTER_DIR/run/frozen-n$1
	mapfile -t pids < <(slurm_node_processes "$1"; [[ ! -e $frozen ]] || cat "$frozen")
	rm -f "$frozen"
	((${#pids[@]})) || return 0
	kill -CONT "${pids[@]}" 2> /dev/null || true
}

# slurm_node_restore N: files of the dead node would break a job of the same number. A frozen node is killed first.
slurm_node_restore() {
	! slurm_node_is_frozen "$1" || slurm_node_kill "$1"
	daemon_gone "slurmd-n$1" || return 0
	rm -rf "$CLUSTER_DIR/tmp-n$1"/* "$CLUSTER_DIR/spool-n$1"
	slurmd_start "$1"
	wait_for 40 slurm_node_in_service "$1" ||
		fail "n$1 did not come back: $(slurm_command sinfo -h -n "n$1" -o '%T %E')"
}

slurm_node_in_service() {
	# A node that Slurm considered down returns by itself; one that was set DOWN or drained must be resumed. Resuming
	# a node that is already back is an error, which does not matter.
	slurm_command scontrol update nodename="n$1" state=resume > /dev/null 2>&1 || true
	[[ $(slurm_command sinfo -h -n "n$1" -o %t) =~ ^(idle|mix|alloc|comp)$ ]]
}
