# shellcheck shell=bash
# The coordinator of the cluster: etc/wlbd.conf for the service and `wlb db`, etc/wlb.conf for everybody else.

wlbd_address() { printf '%s:%s' "$(controller_address)" $((PORT_BASE + 1)); }

wlbd_configure() {
	(umask 077 && cat > "$CLUSTER_DIR/etc/wlbd.conf") <<- END
		listen = $(wlbd_address)
		database = host=$CLUSTER_DIR/pg port=5432 dbname=$POSTGRES_DATABASE user=$POSTGRES_USER
		munge_socket = $CLUSTER_DIR/$MUNGE_SOCKET_NAME
		$([[ -z $WLBD_MORE_CONF ]] || cat "$WLBD_MORE_CONF")
	END
	# root needs no line, and a wlb that does not know the key would refuse it.
	cat > "$CLUSTER_DIR/etc/wlb.conf" <<- END
		coordinator = $(wlbd_address)
		munge_socket = $CLUSTER_DIR/$MUNGE_SOCKET_NAME
		$(((EUID == 0)) || printf 'coordinator_user = %s' "$EUID")
	END
}

# The schema, then the service, as an administrator starts them.
wlbd_start() {
	local output
	daemon_gone wlbd || return 0
	output=$(cluster_run_env "$BUILD_DIR/bin/wlb" db migrate 2>&1) || fail "wlb db migrate: $output"
	wlbd_restart
	wait_for 30 wlbd_has_database || {
		daemon_log wlbd
		fail "wlbd did not connect to its database within 30 s: its last lines are above"
	}
}

# The service alone, as systemd starts it again: its database may be unavailable.
wlbd_restart() {
	cluster_run_env daemon_start wlbd "$WLBD"
	wait_for 30 wlbd_ready || {
		daemon_log wlbd
		fail "wlbd did not start: its last lines are above"
	}
}

# Whether it answers on its port, with any status.
wlbd_ready() {
	daemon_pid wlbd > /dev/null && (exec 3<> "/dev/tcp/$(controller_address)/$((PORT_BASE + 1))") 2>/dev/null
}

wlbd_has_database() (
	exec 3<> "/dev/tcp/$(controller_address)/$((PORT_BASE + 1))"
	printf 'GET /healthz HTTP/1.1\r\nHost: wlbd\r\nConnection: close\r\n\r\n' >&3
	read -r -t 5 status <&3 && [[ $status == "HTTP/1.1 200 "* ]]
) 2> /dev/null

wlbd_kill() { daemon_stop wlbd KILL 5; }
