# shellcheck shell=bash
# A block of TCP ports for one cluster, below the range from which the kernel gives out ports.
#
# A block is held by a symbolic link /tmp/wlb-ports-BASE to the cluster's directory, which shows who holds it. Links are
# made and removed under a lock on /tmp itself, which every user may take, so that two clusters that start at the same
# time, even of different users, never share a block.

PORTS_PER_BLOCK=100
PORTS_FIRST=10000
PORTS_LAST=32600
PORTS_LOCK_S=60

# ports_reserve DIR: prints the first port of the block. DIR exists already: a link to nothing is that of a dead cluster.
ports_reserve() {
	local lock
	exec {lock}< /tmp
	flock -w "$PORTS_LOCK_S" "$lock" ||
		fail "another process has locked /tmp for $PORTS_LOCK_S s, so that no ports can be reserved; find it by lslocks"
	ports_link "$1"
	exec {lock}<&-
}

# -n: a link to a directory is taken for a link, not for the directory to make another link in.
ports_link() {
	local blocks=$(((PORTS_LAST - PORTS_FIRST) / PORTS_PER_BLOCK)) try base link
	local first=$((RANDOM % blocks))
	for ((try = 0; try < blocks; try++)); do
		base=$((PORTS_FIRST + (first + try) % blocks * PORTS_PER_BLOCK))
		link=/tmp/wlb-ports-$base
		[[ -L $link && ! -e $link ]] && rm -f "$link" 2> /dev/null # its cluster is gone
		if ports_free "$base" && ln -sn "$1" "$link" 2> /dev/null; then
			printf '%s' "$base"
			return
		fi
	done
	fail "no free block of $PORTS_PER_BLOCK ports between $PORTS_FIRST and $PORTS_LAST; stop another cluster" \
		"(ls -l /tmp/wlb-ports-*)"
}

# Whether no port of the block is in use, by a listener or a connection: a local address of the kernel's tables ends in it. Those of
# a busy machine have tens of thousands of lines, of connections that have just ended, and other starts wait for the lock meanwhile.
ports_free() {
	local ports
	printf -v ports '|%04X' $(seq "$1" $(($1 + PORTS_PER_BLOCK - 1)))
	! LC_ALL=C grep -qE "^ *[0-9]+: [0-9A-F]+:(${ports:1}) " /proc/net/tcp /proc/net/tcp6 2> /dev/null
}

# ports_release DIR: searches for the link that names DIR, since a start may have ended before it stored the block.
ports_release() {
	local link
	for link in /tmp/wlb-ports-*; do
		if [[ $(readlink "$link") == "$1" ]]; then
			rm -f "$link"
		fi
	done
}
