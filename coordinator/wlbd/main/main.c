/* wlbd: creates the parts of the service and connects them. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/command.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/api/find_attempt.h"
#include "coordinator/wlbd/api/routes.h"
#include "coordinator/wlbd/api/runs/metrics.h"
#include "coordinator/wlbd/api/runs/queries.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/attempts/launchers.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/database/db_server.h"
#include "coordinator/wlbd/database/lease.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/database/sole_use.h"
#include "coordinator/wlbd/detection/activities.h"
#include "coordinator/wlbd/http/body_memory.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/http.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/incident/node_question.h"
#include "coordinator/wlbd/jobs/jobs.h"
#include "coordinator/wlbd/lease_end.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/main/memory.h"
#include "coordinator/wlbd/main/options.h"
#include "coordinator/wlbd/main/tick.h"
#include "coordinator/wlbd/nodes/lost_nodes.h"
#include "coordinator/wlbd/nodes/node_probe.h"
#include "coordinator/wlbd/slurm/job_orders.h"
#include "coordinator/wlbd/slurm/job_poll.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/slurm/user_names.h"
#include "coordinator/wlbd/thread_pool.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	AUTH_THREADS = 2,
	SLURM_THREADS = 3,
	WAITING_MAX = 12288,     /* for a thread pool: of one user more than the nodes that reconnect after a restart */
	READ_TIMEOUT_FACTOR = 5, /* of GET requests over short statements */
	TICK_S = 1,
	SUSPECTED_TICK_MS = 250,
	STORE_REST_MS = 2000, /* at the end, where the database answered before */
};

static const struct wlbd_budget_limits activity_limits = {.user_bytes = WLBD_ACTIVITY_USER_BYTES,
                                                          .all_bytes = WLBD_ACTIVITY_ALL_BYTES};
static const struct wlbd_budget_limits attempt_limits = {.user_bytes = WLBD_ATTEMPT_USER_BYTES,
                                                         .all_bytes = WLBD_ATTEMPT_ALL_BYTES};

/* ---- events ---------------------------------------------------------------------------------------- */

static void on_signal(evutil_socket_t signal, short what, void *context)
{
	struct wlbd *wlbd = context;
	(void)what;
	wlbd_log(WLBD_LOG_INFO, "%s: ending", strsignal(signal));
	event_base_loopexit(wlbd->base, NULL);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	struct wlbd *wlbd = context;
	if (wlbd->is_acting)
		wlbd_tick(wlbd);
	wlbd_memory_return_freed();
}

static void on_suspected_tick(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	struct wlbd *wlbd = context;
	if (wlbd->is_acting)
		wlbd_tick_suspected(wlbd);
}

static void on_database_ready(void *context)
{
	struct wlbd *wlbd = context;
	struct wlb_error warning;
	if (wlbd->stopping) {
		wlbd_outbox_resume(wlbd->outbox);
		return;
	}
	wlbd->database_was_up = true;
	wlbd->not_stored_ms = 0;
	wlbd->recording_since_ms = wlb_clock_ms();
	wlbd_log(WLBD_LOG_INFO, "database: connected");
	if (wlbd_db_encoding_check(wlbd->writes, &warning) != 0)
		wlbd_log(WLBD_LOG_WARNING, "database: %s", warning.message);
	if (wlbd->sole_use != NULL)
		wlbd_sole_use_connected(wlbd->sole_use);
	wlbd_attempts_reload(wlbd);
	wlbd_outbox_resume(wlbd->outbox);
}

static void on_database_unavailable(void *context, const char *detail)
{
	struct wlbd *wlbd = context;
	if (wlbd->stopping)
		return;
	if (wlbd->counters.database_losses++ == 0 || wlbd->database_was_up)
		wlbd_log(WLBD_LOG_WARNING, "database: no connection: %s", detail);
	wlbd->database_was_up = false;
}

/* A launcher may have tried in vain to have its end recorded. */
static void on_not_stored(void *context)
{
	struct wlbd *wlbd = context;
	wlbd->recording_since_ms = wlbd->not_stored_ms = wlb_clock_ms();
}

static void on_wrong_schema(void *context, const struct wlb_error *error)
{
	struct wlbd *wlbd = context;
	fprintf(stderr, "wlbd: %s\n", error->message);
	wlbd->exit_code = WLB_EXIT_FAILED;
	event_base_loopexit(wlbd->base, NULL);
}

/* ---- parts ----------------------------------------------------------------------------------------- */

/* `term`: of the lease; 0: there is none. */
static int open_database(struct wlbd *wlbd, int64_t term, struct wlb_error *error)
{
	const struct wlbd_config *config = &wlbd->config;
	struct wlbd_db_hooks reads = {.wrong_schema = on_wrong_schema, .context = wlbd};
	struct wlbd_db_hooks changes = {.wrong_schema = on_wrong_schema, .not_stored = on_not_stored, .context = wlbd};
	struct wlbd_db_hooks writes = changes;
	writes.ready = on_database_ready;
	writes.unavailable = on_database_unavailable;
	int timeout_ms = config->database_timeout_ms;
	wlbd->database = wlbd_db_server_new(wlbd->base, config->database, error);
	if (wlbd->database == NULL)
		return -1;
	wlbd_db_server_set_term(wlbd->database, term);
	wlbd->writes = wlbd_db_new(wlbd->base, wlbd->database, timeout_ms, &writes, error);
	wlbd->questions = wlbd->writes != NULL ? wlbd_db_pool_new_over(wlbd->writes, error) : NULL;
	wlbd->polls = wlbd_db_new(wlbd->base, wlbd->database, timeout_ms, &reads, error);
	wlbd->changes = wlbd_db_pool_new(wlbd->base, wlbd->database, timeout_ms, &changes, error);
	wlbd->deliveries = wlbd_db_pool_new(wlbd->base, wlbd->database, timeout_ms, &changes, error);
	wlbd->reads = wlbd_db_pool_new(wlbd->base, wlbd->database, timeout_ms * READ_TIMEOUT_FACTOR, &reads, error);
	bool all = wlbd->questions != NULL && wlbd->polls != NULL && wlbd->changes != NULL &&
	           wlbd->deliveries != NULL && wlbd->reads != NULL;
	return all ? 0 : -1;
}

/* What is in memory. */
static int make_lists(struct wlbd *wlbd, struct wlb_error *error)
{
	wlbd->nodes = wlbd_nodes_new();
	wlbd->node_probes = wlbd_node_probes_new(wlbd);
	wlbd->lost_nodes = wlbd_lost_nodes_new(wlbd);
	wlbd->activity_budget = wlbd_budget_new(&activity_limits);
	wlbd->attempt_budget = wlbd_budget_new(&attempt_limits);
	wlbd->attempts = wlbd_attempts_new(wlbd_attempt_end_judge);
	wlbd->searches = wlbd_attempt_searches_new();
	wlbd->launchers = wlbd_launchers_new();
	wlbd->job_orders = wlbd_job_orders_new();
	if (wlbd->nodes == NULL || wlbd->node_probes == NULL || wlbd->lost_nodes == NULL ||
	    wlbd->activity_budget == NULL || wlbd->attempt_budget == NULL || wlbd->attempts == NULL ||
	    wlbd->searches == NULL || wlbd->launchers == NULL || wlbd->job_orders == NULL)
		return wlb_fail(error, "out of memory");
	return 0;
}

/* What only a wlbd that acts has. */
static int open_acting(struct wlbd *wlbd, int64_t term, struct wlb_error *error)
{
	if (make_lists(wlbd, error) != 0)
		return -1;
	wlbd->bodies = wlbd_thread_pool_new(wlbd->base, "long requests", 1, WAITING_MAX, error);
	wlbd->slurm_questions =
		wlbd_thread_pool_new(wlbd->base, "questions to Slurm", SLURM_THREADS, WAITING_MAX, error);
	wlbd->slurm_orders = wlbd_thread_pool_new(wlbd->base, "orders to Slurm", 1, WAITING_MAX, error);
	wlbd->resolver = wlbd_thread_pool_new(wlbd->base, "names of nodes", 1, WLBD_NODES_MAX, error);
	wlbd->user_names = wlbd_user_names_new(error);
	wlbd->queries = wlbd_queries_new(wlbd->base, error);
	if (wlbd->user_names == NULL || wlbd->queries == NULL || wlbd->bodies == NULL || wlbd->slurm_questions == NULL ||
	    wlbd->slurm_orders == NULL || wlbd->resolver == NULL || open_database(wlbd, term, error) != 0)
		return -1;
	wlbd->outbox = wlbd_outbox_new(wlbd->base, wlbd->writes, &wlbd->counters.statements_dropped);
	if (wlbd->lease == NULL)
		wlbd->sole_use = wlbd_sole_use_new(wlbd->base, wlbd->writes);
	wlbd->jobs = wlbd_jobs_new(wlbd);
	if (wlbd->outbox == NULL || (wlbd->lease == NULL && wlbd->sole_use == NULL) || wlbd->jobs == NULL)
		return wlb_fail(error, "out of memory");
	wlbd->is_acting = true;
	wlbd_slurm_identify(wlbd);
	wlbd_nodes_refresh(wlbd, 0, NULL, NULL);
	return 0;
}

static void on_lease(void *context, int64_t term)
{
	struct wlbd *wlbd = context;
	struct wlb_error error;
	if (open_acting(wlbd, term, &error) == 0) {
		wlbd_job_poll_all(wlbd->job_poll); /* what the one before has found out, and not acted on */
		return;
	}
	wlbd_log(WLBD_LOG_ERROR, "%s", error.message);
	wlbd->exit_code = WLB_EXIT_FAILED;
	event_base_loopexit(wlbd->base, NULL);
}

/* Where another wlbd may act, this one stands by until it has the lease. One that listens on all addresses is named by
 * its host. */
static int open_lease(struct wlbd *wlbd, const char *address, struct wlb_error *error)
{
	char name[600], host[256] = "?";
	bool is_any = strcmp(wlbd->config.listen_host, "0.0.0.0") == 0 || strcmp(wlbd->config.listen_host, "::") == 0;
	gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), "%s%s", is_any ? host : "", is_any ? strrchr(address, ':') : address);
	const struct wlbd_lease_hooks hooks = {.begin = on_lease, .wrong_schema = on_wrong_schema, .context = wlbd};
	wlbd->lease = wlbd_lease_new(wlbd->base, &wlbd->config, name, &hooks, error);
	return wlbd->lease != NULL ? 0 : -1;
}

static int open_parts(struct wlbd *wlbd, char *address, size_t size, struct wlb_error *error)
{
	wlbd->base = event_base_new();
	wlbd->routes = &wlbd_routes;
	wlbd->slurm_uid = (uid_t)-1;
	if (wlbd->base == NULL)
		return wlb_fail(error, "out of memory");
	if (wlb_slurm_open(error) != 0)
		return -1;
	wlbd->auth = wlbd_thread_pool_new(wlbd->base, "credentials", AUTH_THREADS, WAITING_MAX, error);
	if (wlbd->auth == NULL || wlbd_http_open(wlbd, address, size, error) != 0)
		return -1;
	return wlbd->config.lease_ms > 0 ? open_lease(wlbd, address, error) : open_acting(wlbd, 0, error);
}

/* Statements under way are answered as not done. */
static void stop_database(struct wlbd *wlbd)
{
	wlbd_db_stop(wlbd->writes);
	wlbd_db_stop(wlbd->polls);
	wlbd_db_pool_stop(wlbd->changes);
	wlbd_db_pool_stop(wlbd->deliveries);
	wlbd_db_pool_stop(wlbd->reads);
}

/* Stores what the outbox holds, with what other parts of wlbd put into it when they ended. `writes` connects again for
 * the outbox alone. */
static void store_rest(struct wlbd *wlbd)
{
	const struct timeval rest = {STORE_REST_MS / 1000, STORE_REST_MS % 1000 * 1000};
	int64_t end_ms = wlb_clock_ms() + STORE_REST_MS;
	event_base_loopexit(wlbd->base, &rest); /* a database that does not answer makes no event */
	while (wlbd_outbox_count(wlbd->outbox) > 0 && wlb_clock_ms() < end_ms)
		event_base_loop(wlbd->base, EVLOOP_ONCE);
}

/* What is under way is answered first. The attempts are freed before the connections, whose end would be a symptom. */
static void close_parts(struct wlbd *wlbd)
{
	bool may_store = wlbd->exit_code == WLB_EXIT_DONE && wlbd->outbox != NULL && wlbd_db_ready(wlbd->writes);
	wlbd->stopping = true;
	wlbd_queries_free(wlbd->queries);
	wlbd_lease_end_exits();
	wlbd_lease_stop(wlbd->lease);
	wlbd_thread_pool_free(wlbd->auth);
	wlbd_thread_pool_free(wlbd->bodies);
	wlbd_thread_pool_free(wlbd->slurm_questions);
	wlbd_thread_pool_free(wlbd->slurm_orders);
	wlbd_user_names_free(wlbd->user_names);
	wlbd_thread_pool_free(wlbd->resolver);
	wlbd_node_probes_free(wlbd->node_probes);
	stop_database(wlbd);
	wlbd_sole_use_free(wlbd->sole_use);
	wlbd_lost_nodes_free(wlbd->lost_nodes);
	wlbd_node_questions_free(wlbd->attempts);
	wlbd_attempts_free(wlbd->attempts);
	wlbd_budget_free(wlbd->activity_budget);
	wlbd_budget_free(wlbd->attempt_budget);
	wlbd_attempt_searches_free(wlbd->searches);
	wlbd_jobs_free(wlbd->jobs);
	wlbd_launchers_free(wlbd->launchers);
	wlbd_job_orders_free(wlbd->job_orders);
	wlbd_http_close(wlbd);
	wlbd_db_pool_free(wlbd->questions);
	wlbd_db_free(wlbd->polls);
	wlbd_db_pool_free(wlbd->changes);
	wlbd_db_pool_free(wlbd->deliveries);
	wlbd_db_pool_free(wlbd->reads);
	if (may_store)
		store_rest(wlbd);
	wlbd_outbox_free(wlbd->outbox);
	wlbd_db_free(wlbd->writes);
	wlbd_db_server_free(wlbd->database);
	wlbd_lease_free(wlbd->lease);
	wlbd_nodes_free(wlbd->nodes);
	if (wlbd->base != NULL)
		event_base_free(wlbd->base);
}

/* Each node's reporter takes a descriptor, and so does each probe. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Clients accept replies of root unless they are configured with another account. */
static void log_account(void)
{
	uid_t uid = geteuid();
	if (uid != 0)
		wlbd_log(WLBD_LOG_INFO,
		         "runs as uid %u: clients trust it only with coordinator_user = %u in wlb.conf, or its name",
		         uid, uid);
}

static int serve(struct wlbd *wlbd, struct wlb_error *error)
{
	char address[300];
	const struct timeval tick = {TICK_S, 0}, suspected_tick = {0, SUSPECTED_TICK_MS * 1000};

	if (open_parts(wlbd, address, sizeof(address), error) != 0)
		return WLB_EXIT_FAILED;
	struct event *events[] = {
		evsignal_new(wlbd->base, SIGTERM, on_signal, wlbd),
		evsignal_new(wlbd->base, SIGINT, on_signal, wlbd),
		event_new(wlbd->base, -1, EV_PERSIST, on_tick, wlbd),
		event_new(wlbd->base, -1, EV_PERSIST, on_suspected_tick, wlbd),
	};
	event_add(events[0], NULL);
	event_add(events[1], NULL);
	event_add(events[2], &tick);
	event_add(events[3], &suspected_tick);
	wlbd_log(WLBD_LOG_INFO, "wlbd %s listens on %s", WLB_VERSION, address);
	log_account();
	event_base_dispatch(wlbd->base);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		event_free(events[i]);
	return wlbd->exit_code;
}

static int run(void *values, struct wlb_error *error)
{
	const struct wlbd_options *options = values;
	const char *path = options->config != NULL ? options->config : wlbd_config_path();
	struct wlbd wlbd = {.started_unix_ms = (int64_t)(1e3 * wlb_clock_unix_s())};
	struct wlb_error warning;

	if (wlbd_config_load(path, &wlbd.config, error) != 0)
		return WLB_EXIT_USAGE;
	bool is_private = wlbd_config_check_readers(path, &wlbd.config, geteuid(), &warning) == 0;
	if (options->check) {
		if (!is_private)
			fprintf(stderr, "wlbd: warning: %s\n", warning.message);
		printf("%s: the settings are valid\n", path);
		return WLB_EXIT_DONE;
	}
	signal(SIGPIPE, SIG_IGN);
	raise_descriptor_limit();
	wlbd_memory_configure();
	wlbd_log_open((enum wlbd_log_level)wlbd.config.log_level);
	if (!is_private)
		wlbd_log(WLBD_LOG_WARNING, "%s", warning.message);
	wlbd_body_memory_open();
	/* Clients choose the keys of objects; a random seed prevents that they choose keys that collide. */
	json_object_seed(0);
	int code = serve(&wlbd, error);
	close_parts(&wlbd);
	return code;
}

static const struct wlb_command command = {
	.options = &wlbd_option_table,
	.values_bytes = sizeof(struct wlbd_options),
	.run = run,
};

int main(int argc, char **argv)
{
	wlbd_lease_end_prepare(argv);
	return wlb_command_main(&command, argc, argv);
}
