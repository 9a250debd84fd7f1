#include "spank/announce.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/client/client.h"
#include "spank/child.h"
#include "spank/json.h"

/* The coordinator takes at most so many bytes of a text, and of a name. */
enum { TEXT_MOST = 4096, NAME_MOST = 255 };

/* Writes as many characters of the value as have room in `most` bytes. */
static void write_member(FILE *out, const char *key, const char *value, size_t most)
{
	char stored[TEXT_MOST + 1];
	if (value[0] == '\0')
		return;
	wlb_text_store(stored, most + 1, value);
	fprintf(out, ",\"%s\":", key);
	wlb_json_string(out, stored);
}

/* A number that was not given is 0, but for one that has a default: without the option it is none. */
static void write_number(FILE *out, const struct wlb_job_option *option, const char *value)
{
	if (value[0] != '\0' || option->default_value == NULL)
		fprintf(out, ",\"%s\":%s", option->key, value[0] != '\0' ? value : "0");
}

static void write_policy(FILE *out, const struct wlb_spank_options *options)
{
	fprintf(out, ",\"policy\":{\"%s\":", wlb_job_options[WLB_JOB_LAYOUT].key);
	wlb_json_string(out, options->text[WLB_JOB_LAYOUT]);
	for (int i = WLB_JOB_LAYOUT + 1; i < WLB_JOB_OPTION_COUNT; i++) {
		const struct wlb_job_option *option = &wlb_job_options[i];
		if (option->kind == WLB_JOB_NUMBER)
			write_number(out, option, options->text[i]);
		else
			write_member(out, option->key, options->text[i], TEXT_MOST);
	}
	fputc('}', out);
}

char *wlb_announce_body(const struct wlb_announcement *announcement)
{
	char *body = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&body, &size);
	if (out == NULL)
		return NULL;
	fputs("{\"run_id\":", out);
	wlb_json_string(out, announcement->run_id);
	fprintf(out, ",\"job_id\":%u,\"restart_count\":%u", announcement->job_id, announcement->restart_count);
	write_member(out, "cluster", announcement->cluster, NAME_MOST);
	write_member(out, "job_name", announcement->job_name, TEXT_MOST);
	write_member(out, "nodes", announcement->nodes, TEXT_MOST);
	write_policy(out, announcement->options);
	fputc('}', out);
	if (fclose(out) != 0) {
		free(body);
		return NULL;
	}
	return body;
}

/* If the arguments do not name it, slurmstepd's environment or wlb.conf may. */
static int find_coordinator(const struct wlb_spank_args *args, struct wlb_client_config *config,
                            struct wlb_error *error)
{
	const struct wlb_client_config *given = &args->client;
	if (wlb_client_config_load(config, error) != 0 && given->coordinator_count == 0)
		return -1;
	if (given->coordinator_count > 0) {
		memcpy(config->coordinators, given->coordinators, sizeof(config->coordinators));
		config->coordinator_count = given->coordinator_count;
	}
	if (given->munge_socket[0] != '\0')
		memcpy(config->munge_socket, given->munge_socket, sizeof(config->munge_socket));
	return given->coordinator_user[0] != '\0' ? wlb_client_config_user(config, given->coordinator_user, error) : 0;
}

static int send_request(const struct wlb_spank_args *args, const char *body, struct wlb_error *error)
{
	struct wlb_client_config config;
	struct wlb_reply reply;
	if (find_coordinator(args, &config, error) != 0)
		return -1;
	struct wlb_connection *connection = wlb_connection_new(&config);
	if (connection == NULL)
		return wlb_fail(error, "no memory");
	if (wlb_connection_request(connection, "POST", "/v1/runs", body, args->timeout_ms, &reply, error) != 0)
		return -1;
	if (reply.status != 200)
		return wlb_fail(error, "the coordinator answers %d: %.300s", reply.status, reply.body);
	return 0;
}

/* The child ends with slurmstepd at the latest, and runs none of slurmstepd's exit handlers. */
static _Noreturn void run_child(const struct wlb_spank_args *args, const char *body, pid_t parent, int report)
{
	struct wlb_error error;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	if (send_request(args, body, &error) == 0)
		_exit(0);
	size_t length = strlen(error.message);
	_exit(write(report, error.message, length) == (ssize_t)length ? 1 : 2);
}

int wlb_announce(const struct wlb_spank_args *args, const char *body, struct wlb_error *error)
{
	struct wlb_child child;
	int report, status;
	char text[sizeof(error->message)];
	pid_t parent = getpid();
	if (wlb_child_start(&child, &report, error) != 0)
		return -1;
	if (child.pid == 0)
		run_child(args, body, parent, report);
	if (wlb_child_finish(&child, args->timeout_ms, "the coordinator or munged", text, sizeof(text), &status,
	                     error) != 0)
		return -1;
	if (text[0] != '\0')
		return wlb_fail(error, "%s", text);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return wlb_fail(error, "the announcing process ended with wait status 0x%x", (unsigned)status);
	return 0;
}
