# shellcheck shell=bash
# With --cgroup Slurm tracks processes by version 2 of cgroups. The cluster has a cgroup of its own, which is the root for its
# slurmds, in a namespace: the cgroups of clusters side by side would have the same names.

cgroup_mount() { awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts; }

cgroup_folder() { printf '%s/wlb-%s' "$(cgroup_mount)" "$PORT_BASE"; }

# Fails with one line where this account or this system cannot make cgroups.
cgroup_check() {
	local mount
	mount=$(cgroup_mount)
	[[ -n $mount ]] || fail_usage "--cgroup: this host has no version 2 of cgroups; start it without --cgroup"
	[[ -w $mount && $EUID == 0 ]] ||
		fail_usage "--cgroup: this account may make no cgroups in $mount; start it as root, or without --cgroup"
}

cgroup_create() { mkdir -p "$(cgroup_folder)/system.slice" "$CLUSTER_DIR/cgroup"; }

cgroup_conf() { printf 'CgroupPlugin=cgroup/v2\nCgroupMountpoint=%s/cgroup\nIgnoreSystemd=yes\n' "$CLUSTER_DIR"; }

# cgroup_enter FOLDER MOUNT LIBRARY COMMAND...: becomes the command, for which FOLDER is the root of all cgroups.
cgroup_enter() {
	printf '%d\n' $$ > "$1/cgroup.procs" &&
		exec unshare --cgroup --mount bash -c 'mount -t cgroup2 none "$1" && LD_PRELOAD=$2 exec "${@:3}"' bash "${@:2}"
}

# A cgroup can be removed a moment after its last process has ended.
cgroup_remove() { wait_for 10 cgroup_remove_round || fail "$(cgroup_folder): cannot be removed: a process is in it"; }

cgroup_remove_round() {
	find "$(cgroup_folder)" -depth -type d -exec rmdir {} + 2> /dev/null || true
	[[ ! -d $(cgroup_folder) ]]
}
