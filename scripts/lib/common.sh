# shellcheck shell=bash
# What every script needs: messages, failing, waiting with a bound.

WLB_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

say() { printf '%s\n' "$*" >&2; }

# fail WORD...: a failure.
fail() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# fail_usage WORD...: an error in the call: repeating it would fail in the same way.
fail_usage() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 2
}

# wait_for SECONDS COMMAND...: runs COMMAND every 50 ms until it succeeds; returns 1 if it did not in time.
wait_for() {
	local end_ms=$(($(now_ms) + $1 * 1000))
	shift
	until "$@"; do
		(($(now_ms) < end_ms)) || return 1
		sleep 0.05
	done
}

now_ms() { printf '%s' $((${EPOCHREALTIME/[.,]/} / 1000)); }

# slurm_series PREFIX: "25.11" of the Slurm installed in PREFIX; an empty PREFIX is the system's. Asks slurmd, which
# answers without a slurm.conf.
slurm_series() {
	local version
	version=$("${1:-/usr}/sbin/slurmd" -V 2> /dev/null) || fail "no slurmd in ${1:-/usr}/sbin; run scripts/setup"
	version=${version#* }
	printf '%s' "${version%.*}"
}

# build_dir SLURM-PREFIX [PRESET]: the folder of that build.
build_dir() {
	local dir=$WLB_ROOT/build
	[[ ${2:-release} == release ]] || dir+=-$2
	[[ -z $1 ]] || dir+=-slurm-$(slurm_series "$1")
	printf '%s' "$dir"
}

# check_slurm_prefix PREFIX: fails with the remedy when no Slurm is there.
check_slurm_prefix() {
	[[ -z $1 || (-x $1/sbin/slurmctld && -x $1/sbin/slurmd && -f $1/include/slurm/spank.h) ]] ||
		fail_usage "--slurm-prefix $1: no sbin/slurmctld, sbin/slurmd and include/slurm/spank.h there;" \
			"name the --prefix that Slurm was configured with"
}
