#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/clock.h"
#include "common/file.h"
#include "coordinator/client/deliver.h"
#include "coordinator/client/reporter.h"
#include "munged.h"
#include "server.h"

enum { RECORDS_MAX = 5000 };

/* What the coordinator has stored, as the real one does: in order, each once. */
struct coordinator {
	pthread_mutex_t lock;
	struct server *server;
	int64_t stored;
	int64_t forget_at; /* once: having stored so many, it remembers none */
	int seen[RECORDS_MAX];
	int largest_batch;
	int reports;
	int goodbyes;
	int lost_rank;
	int64_t step;
	char step_id[32];
	char slurm_end[64];
	bool is_slurm_end_certain;
	int unavailable_status; /* answers everything with it; 0: not unavailable */
	bool order_end;
	bool is_silent; /* answers nothing */
	bool impostor;  /* somebody else listens on the port, who cannot prove anything */
	int lost_told;

	/* The test's own, which end() ends where the test failed before it did. */
	struct wlb_reporter *reporter; /* the newest; NULL: it was stopped */
	pid_t peer;                    /* 0: none */
};

/* A field of the coordinator as it is now. */
#define NOW(c, field)                                                                                                  \
	({                                                                                                             \
		pthread_mutex_lock(&(c)->lock);                                                                        \
		__auto_type value = (c)->field;                                                                        \
		pthread_mutex_unlock(&(c)->lock);                                                                      \
		value;                                                                                                 \
	})
#define SET(c, field, value)                                                                                           \
	({                                                                                                             \
		pthread_mutex_lock(&(c)->lock);                                                                        \
		(c)->field = (value);                                                                                  \
		pthread_mutex_unlock(&(c)->lock);                                                                      \
	})
#define WAIT_UNTIL(condition, limit_ms)                                                                                \
	({                                                                                                             \
		int64_t until_ms = wlb_clock_ms() + (limit_ms);                                                        \
		while (!(condition) && wlb_clock_left_ms(until_ms) > 0)                                                \
			wlb_clock_sleep_ms(10);                                                                        \
		assert_true(condition);                                                                                \
	})

static bool answer_with(const struct coordinator *c, int fd, const struct request *request, int status,
                        const char *body)
{
	return c->impostor ? server_reply_with(fd, NULL, status, body) : server_reply(fd, request, status, body);
}

static bool store(struct coordinator *c, int fd, const struct request *request, json_t *body)
{
	char reply[64];
	json_int_t first_seq = 0;
	json_t *records = NULL;
	json_unpack(body, "{s:I, s:o}", "first_seq", &first_seq, "records", &records);
	int count = (int)json_array_size(records);
	if (count > c->largest_batch)
		c->largest_batch = count;
	if (c->forget_at > 0 && c->stored >= c->forget_at) {
		c->forget_at = 0;
		c->stored = 0;
		memset(c->seen, 0, sizeof(c->seen));
	}
	bool gap = first_seq > c->stored + 1;
	for (int64_t seq = first_seq; !gap && seq < first_seq + count; seq++) {
		if (seq <= c->stored)
			continue;
		c->seen[seq]++;
		c->stored = seq;
	}
	snprintf(reply, sizeof(reply), "{\"acked_seq\":%lld,\"error\":\"gap\"}", (long long)c->stored);
	return answer_with(c, fd, request, gap ? 409 : 200, reply);
}

static bool take_report(struct coordinator *c, int fd, const struct request *request, json_t *body)
{
	const char *step_id = NULL, *why = "";
	json_int_t step = 0;
	int goodbye = 0, certain = 0;
	double time_s = 0;
	json_unpack(body, "{s:I, s:b, s?s, s?{s:s, s:f, s:b}}", "step", &step, "goodbye", &goodbye, "step_id", &step_id,
	            "slurm_end", "why", &why, "time", &time_s, "certain", &certain);
	snprintf(c->slurm_end, sizeof(c->slurm_end), "%.40s %.1f", why, time_s);
	c->is_slurm_end_certain = certain;
	json_t *lost = json_array_get(json_object_get(body, "lost_ranks"), 0);
	c->reports++;
	c->goodbyes += goodbye;
	c->step = step;
	c->lost_told += lost != NULL;
	if (lost != NULL)
		c->lost_rank = (int)json_integer_value(json_object_get(lost, "rank"));
	snprintf(c->step_id, sizeof(c->step_id), "%s", step_id != NULL ? step_id : "");
	return answer_with(c, fd, request, 200,
	                   c->order_end ? "{\"order\":\"end\",\"reason\":\"node n3 is lost\"}"
	                                : "{\"order\":\"continue\"}");
}

static bool answer(void *context, int fd, const struct request *request)
{
	struct coordinator *c = context;
	json_t *body = json_loads(request->body, 0, NULL);
	bool keep;
	while (NOW(c, is_silent))
		wlb_clock_sleep_ms(10);
	pthread_mutex_lock(&c->lock);
	if (c->unavailable_status != 0)
		keep = answer_with(c, fd, request, c->unavailable_status,
		                   "{\"error\":\"the database is unavailable\"}");
	else if (strcmp(request->path, "/v1/runs/12/records") == 0)
		keep = store(c, fd, request, body);
	else
		keep = take_report(c, fd, request, body);
	pthread_mutex_unlock(&c->lock);
	json_decref(body);
	return keep;
}

static int begin(void **state)
{
	struct coordinator *c = calloc(1, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	c->lost_rank = -1;
	c->server = server_start(answer, c);
	*state = c;
	return 0;
}

static atomic_int sync_failure; /* of every fdatasync() */
static atomic_int syncs;        /* those that succeeded */

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	if (sync_failure == 0) {
		int rc = __real_fdatasync(fd);
		syncs += rc == 0;
		return rc;
	}
	errno = sync_failure;
	return -1;
}

static void spool_path(char path[128])
{
	snprintf(path, 128, "%s/a-1.rank0.jsonl", munged_folder());
}

static void end_peer(struct coordinator *c)
{
	if (c->peer <= 0)
		return;
	kill(c->peer, SIGKILL);
	waitpid(c->peer, NULL, 0);
	c->peer = 0;
}

/* A test that failed left its reporter, peer and spool, which the next test must not meet. */
static int end(void **state)
{
	struct coordinator *c = *state;
	char path[128];
	sync_failure = 0;
	SET(c, is_silent, false);
	wlb_reporter_abandon(c->reporter);
	end_peer(c);
	if (c->server != NULL)
		server_stop(c->server);
	spool_path(path);
	unlink(path);
	free(c);
	return 0;
}

static struct wlb_reporter *started(struct coordinator *c, const struct wlb_reporter_options *more)
{
	struct wlb_client_config config = server_config(c->server);
	struct wlb_reporter_options options = *more;
	struct wlb_error error;
	options.run_id = "12";
	options.attempt_id = "a-1";
	options.spool_dir = munged_folder();
	struct wlb_reporter *reporter = wlb_reporter_start(&config, &options, &error);
	if (reporter == NULL)
		fail_msg("%s", error.message);
	c->reporter = reporter;
	return reporter;
}

/* Returns the number of records that are left. */
static int64_t stopped(struct coordinator *c, int flush_ms)
{
	struct wlb_reporter *reporter = c->reporter;
	c->reporter = NULL;
	return wlb_reporter_stop(reporter, flush_ms);
}

static void start_peer(struct coordinator *c)
{
	c->peer = fork();
	if (c->peer == 0) {
		pause();
		_exit(0);
	}
}

/* Records that are left in the tests' folder, of a run that has ended. */
static int64_t deliver(const struct wlb_client_config *config, int timeout_ms, struct wlb_error *error)
{
	struct wlb_deliver_options options = {.run_id = "12", .timeout_ms = timeout_ms};
	struct wlb_deliver_result result;
	assert_int_equal(wlb_deliver_folder(config, munged_folder(), &options, &result, error), 0);
	return result.left;
}

static void record_steps(struct wlb_reporter *reporter, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(wlb_reporter_record(reporter, "step", "{\"step\":1}", NULL), 0);
}

static void assert_each_once(struct coordinator *c, int count)
{
	assert_int_equal(NOW(c, stored), count);
	for (int seq = 1; seq <= count; seq++)
		assert_int_equal(c->seen[seq], 1);
}

/* The spool's time; 0: it is not there. */
static time_t spool_written_s(void)
{
	char path[128];
	struct stat about;
	spool_path(path);
	return stat(path, &about) == 0 ? about.st_mtime : 0;
}

static bool spool_is_there(void)
{
	return spool_written_s() != 0;
}

static void records_arrive_once_in_batches(void **state)
{
	struct coordinator *c = *state;
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	record_steps(reporter, 2500);
	assert_int_equal(stopped(c, 10000), 0);
	assert_each_once(c, 2500);
	assert_in_range(c->largest_batch, 1, 1000);
	assert_int_equal(c->reports, 0);
	assert_false(spool_is_there());
}

static void what_is_left_is_delivered_later(void **state)
{
	struct coordinator *c = *state;
	struct wlb_client_config config = server_config(c->server);
	struct wlb_error error;
	SET(c, unavailable_status, 503);
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	record_steps(reporter, 30);
	assert_int_equal(deliver(&config, 1000, &error), 0); /* in use */
	assert_int_equal(stopped(c, 300), 30);
	assert_int_equal(deliver(&config, 1000, &error), 30);
	assert_non_null(strstr(error.message, "database is unavailable"));
	SET(c, unavailable_status, 0);
	assert_int_equal(deliver(&config, 5000, &error), 0);
	assert_each_once(c, 30);
	assert_false(spool_is_there());
}

/* A full disk that shows only when records are synced is told to whoever records next: to the first one already, where
 * the thread syncs its record before the call returns. */
static void a_disk_that_is_full_late_is_reported(void **state)
{
	struct coordinator *c = *state;
	struct wlb_error error;
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	sync_failure = EDQUOT;
	int rc = 0;
	WAIT_UNTIL((rc = rc != 0 ? rc : wlb_reporter_record(reporter, "step", "{\"step\":1}", &error)) != 0, 5000);
	int before = syncs;
	sync_failure = 0;
	assert_non_null(strstr(error.message, "a-1.rank0.jsonl"));
	assert_non_null(strstr(error.message, strerror(EDQUOT)));
	WAIT_UNTIL(syncs > before, 5000);                              /* none fails from then on */
	wlb_reporter_record(reporter, "step", "{\"step\":1}", &error); /* takes the failure of one before that */
	assert_int_equal(wlb_reporter_record(reporter, "step", "{\"step\":1}", &error), 0);
	assert_int_equal(stopped(c, 10000), 0);
}

/* By its time other hosts see that it has a writer, also where that has nothing to record. */
static void a_spool_shows_that_it_has_a_writer(void **state)
{
	struct coordinator *c = *state;
	char path[128];
	const struct timespec hour_ago = {.tv_sec = time(NULL) - 3600};
	SET(c, unavailable_status, 503);
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	record_steps(reporter, 1);
	assert_int_equal(stopped(c, 100), 1);
	spool_path(path);
	assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){hour_ago, hour_ago}, 0), 0);
	reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	WAIT_UNTIL(spool_written_s() > hour_ago.tv_sec + 3000, 5000);
	SET(c, unavailable_status, 0);
	stopped(c, 0);
	struct wlb_client_config config = server_config(c->server);
	assert_int_equal(deliver(&config, 5000, NULL), 0);
}

static void a_coordinator_that_comes_back_gets_everything(void **state)
{
	struct coordinator *c = *state;
	int port = server_port(c->server);
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	record_steps(reporter, 5);
	WAIT_UNTIL(NOW(c, stored) == 5, 5000);
	server_stop(c->server);
	c->server = NULL;
	record_steps(reporter, 5);
	wlb_clock_sleep_ms(1500);
	c->server = server_restart(port, answer, c);
	WAIT_UNTIL(NOW(c, stored) == 10, 10000);
	assert_int_equal(stopped(c, 5000), 0);
	assert_each_once(c, 10);
}

static void a_database_that_lost_records_gets_them_again(void **state)
{
	struct coordinator *c = *state;
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	record_steps(reporter, 8);
	WAIT_UNTIL(NOW(c, stored) == 8, 5000);
	SET(c, forget_at, 8);
	record_steps(reporter, 4);
	assert_int_equal(stopped(c, 10000), 0);
	assert_each_once(c, 12);
}

static void a_silent_coordinator_holds_nobody_up(void **state)
{
	struct coordinator *c = *state;
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0", .node = "n1"});
	SET(c, is_silent, true);
	record_steps(reporter, 3);
	wlb_clock_sleep_ms(200);
	int64_t before_ms = wlb_clock_ms();
	assert_int_equal(stopped(c, 300), 3);
	assert_in_range(wlb_clock_ms() - before_ms, 0, 1500);
	SET(c, is_silent, false);
	struct wlb_client_config config = server_config(c->server);
	assert_int_equal(deliver(&config, 5000, NULL), 0);
}

static void reports_carry_progress_and_bring_orders(void **state)
{
	struct coordinator *c = *state;
	const char *reason = NULL;
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.node = "n1", .rank = -1});
	wlb_reporter_step_id(reporter, "12.0");
	wlb_reporter_progress(reporter, 57);
	assert_int_equal(wlb_reporter_record(reporter, "step", "{}", NULL), -1);
	WAIT_UNTIL(NOW(c, reports) >= 3, 5000);
	assert_int_equal(NOW(c, step), 57);
	assert_string_equal(c->step_id, "12.0");
	assert_int_equal(server_connections(c->server), 1);
	assert_int_equal(wlb_reporter_must_end(reporter, &reason), 0);
	SET(c, order_end, true);
	WAIT_UNTIL(wlb_reporter_must_end(reporter, &reason), 3000);
	assert_string_equal(reason, "node n3 is lost");
	assert_int_equal(NOW(c, goodbyes), 0);
	stopped(c, 1000);
	assert_int_equal(NOW(c, goodbyes), 1);
}

/* In less time than passes between two reports, and in each report from then on, the last one too. */
static void reports_at_once_that_slurm_ends_the_tasks(void **state)
{
	struct coordinator *c = *state;
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.node = "n1", .rank = -1});
	WAIT_UNTIL(NOW(c, reports) == 2, 5000);
	wlb_reporter_slurm_end(reporter, "time limit", 1790000000.5, true);
	WAIT_UNTIL(NOW(c, reports) == 3, 500);
	assert_string_equal(c->slurm_end, "time limit 1790000000.5");
	assert_true(c->is_slurm_end_certain);
	wlb_clock_sleep_ms(500);
	assert_in_range(NOW(c, reports), 3, 4); /* once */
	stopped(c, 1000);
	assert_string_equal(c->slurm_end, "time limit 1790000000.5");
}

static void a_peer_that_dies_is_reported_at_once(void **state)
{
	struct coordinator *c = *state;
	start_peer(c);
	started(c, &(struct wlb_reporter_options){
			   .node = "n1", .peer_ranks = (int[]){5}, .peer_pids = &c->peer, .peer_count = 1});
	WAIT_UNTIL(NOW(c, reports) >= 1, 3000);
	assert_int_equal(NOW(c, lost_rank), -1);
	int64_t before_ms = wlb_clock_ms();
	end_peer(c);
	WAIT_UNTIL(NOW(c, lost_rank) == 5, 3000);
	assert_in_range(wlb_clock_ms() - before_ms, 0, 900); /* the next report would come after a second */
	stopped(c, 1000);
}

/* Somebody binds the port while the coordinator is unavailable, orders the end and acknowledges everything. */
static void an_impostor_is_not_obeyed(void **state)
{
	struct coordinator *c = *state;
	const char *reason = NULL;
	start_peer(c);
	SET(c, impostor, true);
	SET(c, order_end, true);
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0",
	                                                                          .node = "n1",
	                                                                          .peer_ranks = (int[]){5},
	                                                                          .peer_pids = &c->peer,
	                                                                          .peer_count = 1});
	record_steps(reporter, 20);
	WAIT_UNTIL(NOW(c, reports) >= 1, 5000);
	SET(c, order_end, false); /* "continue" needs no proof */
	end_peer(c);
	WAIT_UNTIL(NOW(c, lost_told) >= 2, 15000);
	assert_int_equal(wlb_reporter_must_end(reporter, &reason), 0);
	assert_true(NOW(c, stored) > 0);
	SET(c, impostor, false);
	SET(c, stored, 0);
	memset(c->seen, 0, sizeof(c->seen));
	int told = NOW(c, lost_told);
	WAIT_UNTIL(NOW(c, lost_told) > told && NOW(c, stored) == 20, 15000);
	assert_int_equal(stopped(c, 5000), 0);
	assert_each_once(c, 20);
}

static void a_forked_child_does_nothing(void **state)
{
	struct coordinator *c = *state;
	int status;
	struct wlb_reporter *reporter = started(c, &(struct wlb_reporter_options){.source = "rank0"});
	record_steps(reporter, 1);
	pid_t child = fork();
	if (child == 0)
		_exit(wlb_reporter_record(reporter, "step", "{}", NULL) == -1 && wlb_reporter_stop(reporter, 100) == 0
		              ? 0
		              : 1);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	record_steps(reporter, 1);
	assert_int_equal(stopped(c, 5000), 0);
	assert_each_once(c, 2);
}

static void without_a_coordinator_records_are_kept(void **state)
{
	struct coordinator *c = *state;
	struct wlb_reporter_options options = {
		.run_id = "12", .attempt_id = "a-1", .source = "rank0", .spool_dir = munged_folder(), .node = "n1"};
	c->reporter = wlb_reporter_start(NULL, &options, NULL);
	assert_non_null(c->reporter);
	record_steps(c->reporter, 4);
	assert_int_equal(stopped(c, 100), 4);
	struct wlb_client_config config = server_config(c->server);
	assert_int_equal(deliver(&config, 5000, NULL), 0);
	assert_each_once(c, 4);
}

static void a_folder_that_cannot_be_is_an_error(void **state)
{
	struct wlb_reporter_options options = {
		.run_id = "12", .attempt_id = "a-1", .source = "rank0", .spool_dir = "/proc/nowhere/x"};
	struct wlb_error error;
	(void)state;
	assert_null(wlb_reporter_start(NULL, &options, &error));
	assert_non_null(strstr(error.message, "/proc/nowhere"));
	struct wlb_deliver_result result;
	assert_int_equal(wlb_deliver_folder(NULL, "/nowhere", &(struct wlb_deliver_options){0}, &result, &error), 0);
	assert_int_equal(result.left, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_arrive_once_in_batches),
		TEST(what_is_left_is_delivered_later),
		TEST(a_disk_that_is_full_late_is_reported),
		TEST(a_spool_shows_that_it_has_a_writer),
		TEST(a_coordinator_that_comes_back_gets_everything),
		TEST(a_database_that_lost_records_gets_them_again),
		TEST(a_silent_coordinator_holds_nobody_up),
		TEST(reports_carry_progress_and_bring_orders),
		TEST(reports_at_once_that_slurm_ends_the_tasks),
		TEST(a_peer_that_dies_is_reported_at_once),
		TEST(an_impostor_is_not_obeyed),
		TEST(a_forked_child_does_nothing),
		TEST(without_a_coordinator_records_are_kept),
		TEST(a_folder_that_cannot_be_is_an_error),
	};
	return cmocka_run_group_tests(tests, munged_start, munged_stop);
}
