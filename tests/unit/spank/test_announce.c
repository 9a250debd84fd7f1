#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "spank/announce.h"

static struct wlb_spank_options options;

static void writes_the_body(void **state)
{
	(void)state;
	memset(&options, 0, sizeof(options));
	strcpy(options.text[WLB_JOB_LAYOUT], "auto");
	strcpy(options.text[WLB_JOB_SPARES], "1");
	struct wlb_announcement announcement = {.run_id = "12",
	                                        .job_id = 12,
	                                        .restart_count = 1,
	                                        .cluster = "",
	                                        .job_name = "a\"b",
	                                        .nodes = "n[1-4]",
	                                        .options = &options};
	char *body = wlb_announce_body(&announcement);
	assert_string_equal(body, "{\"run_id\":\"12\",\"job_id\":12,\"restart_count\":1,\"job_name\":\"a\\\"b\","
	                          "\"nodes\":\"n[1-4]\",\"policy\":{\"layout\":\"auto\",\"seq_length\":0,"
	                          "\"min_nodes\":0,\"spares\":1}}");
	free(body);
	strcpy(options.text[WLB_JOB_MODEL], "/m.json");
	strcpy(options.text[WLB_JOB_SEQ_LENGTH], "4096");
	strcpy(options.text[WLB_JOB_ON_FAULT], "hang=report");
	strcpy(options.text[WLB_JOB_GROW], "600");
	announcement.cluster = "c";
	body = wlb_announce_body(&announcement);
	assert_non_null(strstr(body, "\"cluster\":\"c\""));
	assert_non_null(strstr(body, "\"model\":\"/m.json\",\"seq_length\":4096"));
	assert_non_null(strstr(body, "\"spares\":1,\"on_fault\":\"hang=report\",\"grow_s\":600}}"));
	free(body);
}

/* The coordinator refuses an announcement with a longer name or text, and what is no UTF-8. */
static void writes_what_the_coordinator_takes(void **state)
{
	(void)state;
	static char cluster[256], model[sizeof(options.text[0])];
	const char *name, *path;
	memset(&options, 0, sizeof(options));
	strcpy(options.text[WLB_JOB_LAYOUT], "auto");
	memset(cluster, 0xe9, sizeof(cluster) - 1);
	memset(model, 0xe9, sizeof(model) - 1);
	strcpy(options.text[WLB_JOB_MODEL], model);
	struct wlb_announcement announcement = {.run_id = "12",
	                                        .job_id = 12,
	                                        .cluster = cluster,
	                                        .job_name = "caf\xe9",
	                                        .nodes = "",
	                                        .options = &options};
	char *body = wlb_announce_body(&announcement);
	json_t *read = json_loads(body, 0, NULL);
	assert_int_equal(json_unpack(read, "{s:s, s:{s:s}}", "cluster", &name, "policy", "model", &path), 0);
	assert_in_range(strlen(name), 253, 255);
	assert_in_range(strlen(path), 4094, 4096);
	assert_string_equal(json_string_value(json_object_get(read, "job_name")), "caf\xef\xbf\xbd");
	json_decref(read);
	free(body);
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

/* Announces within 100 ms; it must fail in time and leave neither a process nor a descriptor. */
static void expect_bounded_failure(struct wlb_spank_args *args, const char *why)
{
	int64_t least_ms = INT64_MAX;
	args->timeout_ms = 100;
	for (int times = 0; times < 5 && least_ms > 190; times++) { /* other programs take the processors */
		struct wlb_error error = {""};
		int descriptors = open_descriptors();
		int64_t begin_ms = now_ms();
		assert_int_equal(wlb_announce(args, "{}", &error), -1);
		int64_t took_ms = now_ms() - begin_ms;
		least_ms = took_ms < least_ms ? took_ms : least_ms;
		assert_non_null(strstr(error.message, why));
		assert_int_equal(open_descriptors(), descriptors);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
	}
	assert_in_range(least_ms, 0, 190);
}

/* A coordinator that takes connections and never answers; returns its socket. */
static int listen_silently(struct wlb_spank_args *args)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int coordinator = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(coordinator, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(coordinator, 8), 0);
	assert_int_equal(getsockname(coordinator, (struct sockaddr *)&address, &size), 0);
	struct wlb_client_config *client = &args->client;
	*args = (struct wlb_spank_args){.client = {.coordinators = {{.host = "127.0.0.1"}}, .coordinator_count = 1}};
	snprintf(client->coordinators[0].port, sizeof(client->coordinators[0].port), "%d", ntohs(address.sin_port));
	return coordinator;
}

/* A munged that takes connections and never answers: munge_encode would wait for it far longer. */
static void outlives_a_munged_that_hangs(void **state)
{
	(void)state;
	struct wlb_spank_args args;
	int coordinator = listen_silently(&args);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/wlb-munged-%d", (int)getpid());
	int munged = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(munged, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(munged, 8), 0);
	strcpy(args.client.munge_socket, address.sun_path);
	expect_bounded_failure(&args, "within 100 ms");
	close(munged);
	unlink(address.sun_path);
	close(coordinator);
}

static void says_when_munged_is_away(void **state)
{
	(void)state;
	struct wlb_spank_args args;
	int coordinator = listen_silently(&args);
	strcpy(args.client.munge_socket, "/nowhere/munge.sock");
	expect_bounded_failure(&args, "munge");
	close(coordinator);
}

static void says_when_the_coordinator_is_away(void **state)
{
	(void)state;
	struct wlb_spank_args args;
	close(listen_silently(&args));
	expect_bounded_failure(&args, "refused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_the_body),
		cmocka_unit_test(writes_what_the_coordinator_takes),
		cmocka_unit_test(outlives_a_munged_that_hangs),
		cmocka_unit_test(says_when_munged_is_away),
		cmocka_unit_test(says_when_the_coordinator_is_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
