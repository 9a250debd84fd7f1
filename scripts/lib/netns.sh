# shellcheck shell=bash
# The networks of a cluster that was started with --netns: each node is a network namespace.
#
# One more namespace, the switch, has the bridges of two networks. A node has an interface `management` and an interface
# `data`; their other ends are the ports managementN and dataN of the bridges. Slurm, PMIx and the reports to wlbd use
# the management network, where the daemons of the controller have an address through the interface wlb-PORT_BASE of
# this host. MPI uses the data network, which this host is not in. Names and addresses follow from the cluster's block
# of ports, so that clusters side by side have their own.

NETNS_NETWORKS=(management data)
NETNS_CONTROLLER=254 # the last number of its address; that of a node is the node's number

netns_node() { printf 'wlb-%s-n%s' "$PORT_BASE" "$1"; }
netns_switch() { printf 'wlb-%s-switch' "$PORT_BASE"; }
netns_host_interface() { printf 'wlb-%s' "$PORT_BASE"; }

# netns_address NETWORK NUMBER: addresses that RFC 2544 reserves for tests of networks.
netns_address() {
	local second=18
	[[ $1 == management ]] || second=19
	printf '198.%d.%d.%d' "$second" $(((PORT_BASE - PORTS_FIRST) / PORTS_PER_BLOCK)) "$2"
}

# A user's PATH may lack the folder of ip, tc and nft.
netns_ip() { PATH=$PATH:/usr/sbin ip "$@"; }
netns_tc() { PATH=$PATH:/usr/sbin tc "$@"; }
netns_inside() { nsenter --net="/run/netns/$1" -- env PATH="$PATH:/usr/sbin" "${@:2}"; }

# Fails with one line where this account or this system cannot make networks.
netns_check() {
	local program capabilities
	for program in ip tc nft; do
		[[ -x $(PATH=$PATH:/usr/sbin type -P "$program") ]] ||
			fail "--netns: $program is not installed; run scripts/setup"
	done
	capabilities=$((16#$(sed -n 's/^CapEff:\s*//p' /proc/self/status)))
	((capabilities >> 12 & 1 && capabilities >> 21 & 1)) ||
		fail_usage "--netns: this account lacks CAP_NET_ADMIN or CAP_SYS_ADMIN, with which namespaces are made;" \
			"start it as root, or without --netns"
}

# Namespaces of these names are of a cluster whose directory was removed without `stop`.
netns_create() {
	local i
	netns_remove
	netns_make_switch
	for ((i = 1; i <= NODES; i++)); do
		netns_make_node "$i"
	done
}

netns_make_switch() {
	local switch host network
	switch=$(netns_switch) host=$(netns_host_interface)
	netns_ip netns add "$switch"
	for network in "${NETNS_NETWORKS[@]}"; do
		printf 'link add %s type bridge\nlink set %s addrgenmode none up\n' "$network" "$network"
	done | netns_ip -n "$switch" -batch -
	netns_ip link add "$host" type veth peer name controller netns "$switch"
	netns_ip -n "$switch" link set controller addrgenmode none master management up
	netns_ip -batch - <<- END
		link set $host addrgenmode none up
		addr add $(netns_address management $NETNS_CONTROLLER)/24 dev $host
	END
	netns_inside "$switch" nft -f - <<- END
		table bridge wlb {
			set cut { type ipv4_addr . ipv4_addr; }
			chain forward { type filter hook forward priority 0; ip saddr . ip daddr @cut drop; }
		}
	END
}

netns_make_node() {
	local switch node network
	switch=$(netns_switch) node=$(netns_node "$1")
	netns_ip netns add "$node"
	for network in "${NETNS_NETWORKS[@]}"; do
		printf 'link add %s type veth peer name %s netns %s\nlink set %s addrgenmode none master %s up\n' \
			"$network$1" "$network" "$node" "$network$1" "$network"
	done | netns_ip -n "$switch" -batch -
	for network in "${NETNS_NETWORKS[@]}"; do
		printf 'link set %s addrgenmode none up\naddr add %s/24 dev %s\n' \
			"$network" "$(netns_address "$network" "$1")" "$network"
	done | netns_ip -n "$node" -batch -
	netns_ip -n "$node" link set lo up
	for network in "${NETNS_NETWORKS[@]}"; do
		netns_set_rate "$1" "$network" "$LINK_MBIT"
	done
}

# Ends what still runs in the namespaces, whoever started it there, and removes them. The interface of this host goes
# first: the kernel removes what is in a namespace some time after its name.
netns_remove() {
	local name names
	mapfile -t names < <(netns_names)
	kill_all netns_processes "${names[@]}"
	netns_ip link delete "$(netns_host_interface)" 2> /dev/null || true
	for name in "${names[@]}"; do
		netns_ip netns delete "$name"
	done
}

netns_names() {
	local path
	for path in "/run/netns/wlb-$PORT_BASE"-*; do
		[[ ! -e $path ]] || printf '%s\n' "${path##*/}"
	done
}

# netns_processes NAME...: pids of the processes in these namespaces.
netns_processes() {
	local name
	for name in "$@"; do
		netns_ip netns pids "$name"
	done
}

# netns_set_rate N NETWORK MBIT: of both directions. A burst is what a millisecond transfers.
netns_set_rate() {
	local bytes=$(($3 * 125)) rate
	((bytes >= 8000)) || bytes=8000
	rate="root tbf rate ${3}mbit burst $bytes latency 50ms"
	# shellcheck disable=SC2086 # the rate is several words
	netns_tc -n "$(netns_switch)" qdisc replace dev "$2$1" $rate
	# shellcheck disable=SC2086
	netns_tc -n "$(netns_node "$1")" qdisc replace dev "$2" $rate
}

# netns_cut N NETWORK: as when its cable is pulled out.
netns_cut() { netns_ip -n "$(netns_switch)" link set "$2$1" down; }

# netns_cut_pair N M NETWORK: the switch drops what they send to each other.
netns_cut_pair() { netns_pair add "$@" | netns_inside "$(netns_switch)" nft -f -; }

netns_pair() {
	local one other
	one=$(netns_address "$4" "$2") other=$(netns_address "$4" "$3")
	printf '%s element bridge wlb cut { %s . %s, %s . %s }\n' "$1" "$one" "$other" "$other" "$one"
}

# netns_delay N NETWORK DELAY_MS LOSS_PERCENT: a relay is put between the port and its bridge. Some kernels lack netem,
# with which tc would do this.
netns_delay() {
	local switch relay=relay$1 name=relay-n$1-$2
	switch=$(netns_switch)
	[[ $2 == data ]] || relay+=m
	daemon_stop "$name" TERM 5
	netns_ip -n "$switch" link set "$2$1" nomaster
	daemon_start "$name" nsenter --net="/run/netns/$switch" -- python3 "$WLB_ROOT/scripts/lib/link_relay.py" \
		"$2$1" "$relay" "$3" "$4"
	wait_for 30 netns_attach "$relay" "$2" || {
		daemon_log "$name"
		fail "the relay of n$1 did not start: its last lines are above; restore-link $1 restores the link"
	}
}

# netns_attach INTERFACE NETWORK
netns_attach() { netns_ip -n "$(netns_switch)" link set "$1" addrgenmode none master "$2" up 2> /dev/null; }

# netns_restore N: its links are what they were before every fault.
netns_restore() {
	local network
	for network in "${NETNS_NETWORKS[@]}"; do
		daemon_stop "relay-n$1-$network" TERM 5
		netns_attach "$network$1" "$network"
		netns_set_rate "$1" "$network" "$LINK_MBIT"
	done
	netns_pairs_of "$1" | netns_inside "$(netns_switch)" nft -f -
}

# netns_pairs_of N: all are added first, since to delete one that is not there is an error.
netns_pairs_of() {
	local network verb other
	for network in "${NETNS_NETWORKS[@]}"; do
		for verb in add delete; do
			for ((other = 1; other <= NODES; other++)); do
				((other == $1)) || netns_pair "$verb" "$1" "$other" "$network"
			done
		done
	done
}
