#include "coordinator/wlbd/http/http.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "coordinator/wlbd/http/connection.h"
#include "coordinator/wlbd/http/exchange.h"
#include "coordinator/wlbd/http/receive.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	BACKLOG = 4096, /* after a restart every node connects at once */
	UNPROVED_MAX = 1024,
	RESERVED_CONNECTIONS = 256, /* for root and SlurmUser */
	SHARED_CONNECTIONS = 8192,  /* among all other users, of which one may have half: the nodes of a large run */
	CONNECTIONS_MAX = UNPROVED_MAX + RESERVED_CONNECTIONS + SHARED_CONNECTIONS,
	DESCRIPTORS_KEPT = 256,      /* for probes of nodes, PostgreSQL, Slurm, munged */
	CONNECTION_BYTES = 16 << 10, /* of a connection without a body: its head, and that of the reply */
	USER_BYTES = 64 << 20,       /* of bodies, as text and as values */
	SHARED_BYTES = 128 << 20,    /* among all users but root and SlurmUser, who have USER_BYTES more */
	REPLY_USER_BYTES = 32 << 20, /* of long replies, of which a list has 24 MiB at most */
	REPLY_SHARED_BYTES = 256 << 20,
	QUESTIONS_USER_MAX = 512,
	QUESTIONS_MAX = 3584, /* of all users */
};

struct wlbd_http {
	struct MHD_Daemon *daemon;
	struct event *ready; /* the epoll descriptor of the library is readable */
	struct wlbd_connections *connections;
	struct wlbd_exchanges exchanges;
	int connections_max;
	int connection_count;
};

/* ---- the socket ------------------------------------------------------------------------------------ */

static int bind_one(const struct addrinfo *address)
{
	int yes = 1;
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int failure = errno;
	close(fd);
	errno = failure;
	return -1;
}

static int open_socket(const struct wlbd_config *config, struct wlb_error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *found = NULL;
	char port[8];
	snprintf(port, sizeof(port), "%d", config->listen_port);
	int rc = getaddrinfo(config->listen_host, port, &hints, &found);
	if (rc != 0)
		return wlb_fail(error, "listen = %s: %s", config->listen, gai_strerror(rc));
	int fd = bind_one(found);
	freeaddrinfo(found);
	if (fd < 0)
		return wlb_fail(error, "listen = %s: %s", config->listen, strerror(errno));
	return fd;
}

static void format_address(int fd, char *text, size_t size)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char host[256] = "?";
	char port[8] = "?";
	if (getsockname(fd, (struct sockaddr *)&bound, &length) == 0)
		getnameinfo((struct sockaddr *)&bound, length, host, sizeof(host), port, sizeof(port),
		            NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, size, bound.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* ---- the library ------------------------------------------------------------------------------------ */

static void run(struct wlbd_http *http)
{
	MHD_UNSIGNED_LONG_LONG left_ms;
	MHD_run(http->daemon);
	if (evtimer_pending(http->exchanges.wake, NULL) || MHD_get_timeout(http->daemon, &left_ms) != MHD_YES)
		return;
	const struct timeval after = {.tv_sec = (time_t)(left_ms / 1000),
	                              .tv_usec = (suseconds_t)(left_ms % 1000) * 1000};
	event_add(http->exchanges.wake, &after);
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	run(context);
}

/* Its messages are about single connections, and any client can cause them. */
static void on_message(void *context, const char *format, va_list args)
{
	char text[512];
	(void)context;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	wlbd_log_limited(WLBD_LOG_DEBUG, WLBD_LIMIT_HTTP, "http: %s", text);
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
	struct wlbd_http *http = context;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *about = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
		*socket_context = wlbd_connection_opened(http->connections, about->connect_fd);
		http->connection_count++;
		if (http->connection_count == http->connections_max)
			wlbd_log_limited(
				WLBD_LOG_WARNING, WLBD_LIMIT_CONNECTIONS,
				"%d connections are open, the most that are served; others wait until one is closed",
				http->connection_count);
	} else {
		http->connection_count--;
		if (*socket_context != NULL)
			wlbd_connection_closed(*socket_context);
		*socket_context = NULL;
	}
}

static struct MHD_Daemon *start_daemon(struct wlbd *wlbd, struct wlbd_http *http, int fd)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
	                        wlbd_receive_on_data, wlbd, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
	                        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT,
	                        (unsigned int)http->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	                        (size_t)CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
	                        wlbd_receive_begin, wlbd, MHD_OPTION_NOTIFY_COMPLETED, wlbd_receive_end, wlbd,
	                        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
}

/* ---- open and close ----------------------------------------------------------------------------------- */

/* Fewer than descriptors, so that connections alone never use them up. */
static int connections_max(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return CONNECTIONS_MAX;
	rlim_t left = limit.rlim_cur > 2 * DESCRIPTORS_KEPT ? limit.rlim_cur - DESCRIPTORS_KEPT : limit.rlim_cur / 2;
	return left < CONNECTIONS_MAX ? (int)left : CONNECTIONS_MAX;
}

/* Of few connections the same parts as of the most. */
static struct wlbd_budget_limits limits_of(const struct wlbd *wlbd, size_t connections_max, size_t unproved_max)
{
	size_t reserved = connections_max * RESERVED_CONNECTIONS / CONNECTIONS_MAX;
	size_t proved_max = connections_max - unproved_max;
	return (struct wlbd_budget_limits){.user_count = (proved_max - reserved) / 2,
	                                   .all_count = proved_max,
	                                   .reserved_count = reserved,
	                                   .user_bytes = USER_BYTES,
	                                   .all_bytes = SHARED_BYTES + USER_BYTES,
	                                   .reserved_bytes = USER_BYTES,
	                                   .slurm_user = &wlbd->slurm_uid};
}

static int make_parts(struct wlbd *wlbd, struct wlbd_http *http)
{
	int unproved_max = http->connections_max / 2 < UNPROVED_MAX ? http->connections_max / 2 : UNPROVED_MAX;
	const struct wlbd_budget_limits limits = limits_of(wlbd, (size_t)http->connections_max, (size_t)unproved_max);
	const struct wlbd_budget_limits reply_limits = {.user_bytes = REPLY_USER_BYTES,
	                                                .all_bytes = REPLY_SHARED_BYTES + REPLY_USER_BYTES,
	                                                .reserved_bytes = REPLY_USER_BYTES,
	                                                .slurm_user = &wlbd->slurm_uid};
	const struct wlbd_budget_limits question_limits = {.user_count = QUESTIONS_USER_MAX,
	                                                   .all_count = QUESTIONS_MAX};
	wlbd->budget = wlbd_budget_new(&limits);
	wlbd->reply_budget = wlbd_budget_new(&reply_limits);
	wlbd->question_budget = wlbd_budget_new(&question_limits);
	if (wlbd->budget == NULL || wlbd->reply_budget == NULL || wlbd->question_budget == NULL)
		return -1;
	http->connections =
		wlbd_connections_new(wlbd->base, wlbd->budget, wlbd->config.request_timeout_ms, unproved_max);
	return http->connections != NULL ? 0 : -1;
}

static int add_to_event_loop(struct wlbd *wlbd, struct wlbd_http *http)
{
	const union MHD_DaemonInfo *about = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	http->ready = event_new(wlbd->base, about->epoll_fd, EV_READ | EV_PERSIST, on_ready, http);
	http->exchanges.wake = event_new(wlbd->base, -1, 0, on_ready, http);
	if (http->ready == NULL || http->exchanges.wake == NULL || event_add(http->ready, NULL) != 0)
		return -1;
	run(http);
	return 0;
}

int wlbd_http_open(struct wlbd *wlbd, char *address, size_t size, struct wlb_error *error)
{
	int fd = open_socket(&wlbd->config, error);
	struct wlbd_http *http = fd >= 0 ? calloc(1, sizeof(*http)) : NULL;
	if (fd < 0)
		return -1;
	if (http == NULL) {
		close(fd);
		return wlb_fail(error, "out of memory");
	}
	wlbd->http = http;
	TAILQ_INIT(&http->exchanges.list);
	wlbd->exchanges = &http->exchanges;
	http->connections_max = connections_max();
	format_address(fd, address, size);
	if (make_parts(wlbd, http) == 0)
		http->daemon = start_daemon(wlbd, http, fd);
	if (http->daemon == NULL) {
		close(fd);
		return wlb_fail(error, "listen = %s: the server cannot be started: %s", wlbd->config.listen,
		                strerror(errno));
	}
	return add_to_event_loop(wlbd, http) == 0 ? 0 : wlb_fail(error, "out of memory");
}

void wlbd_http_close(struct wlbd *wlbd)
{
	struct wlbd_http *http = wlbd->http;
	if (http == NULL)
		return;
	wlbd_exchanges_resume_all(&http->exchanges);
	if (http->daemon != NULL)
		MHD_stop_daemon(http->daemon);
	if (http->ready != NULL)
		event_free(http->ready);
	if (http->exchanges.wake != NULL)
		event_free(http->exchanges.wake);
	wlbd_connections_free(http->connections);
	wlbd_budget_free(wlbd->budget);
	wlbd_budget_free(wlbd->reply_budget);
	wlbd_budget_free(wlbd->question_budget);
	free(http);
}
