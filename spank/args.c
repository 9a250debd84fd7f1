#include "spank/args.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

#define STATE_DIR "/run/wlb"

static int parse_coordinator(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	if (wlb_client_config_addresses(&args->client, value, error) != 0)
		return -1;
	snprintf(args->coordinator, sizeof(args->coordinator), "%s", value);
	return 0;
}

/* The account is looked up only where it is needed: sbatch and slurmd load the plugin as well. */
static int parse_coordinator_user(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	if (*value == '\0' || strlen(value) >= sizeof(args->client.coordinator_user))
		return wlb_fail(error, "must be the name or number of the account that wlbd runs as, such as "
		                       "coordinator_user=slurm");
	snprintf(args->client.coordinator_user, sizeof(args->client.coordinator_user), "%s", value);
	return 0;
}

static int parse_ms(const char *value, int most_ms, const char *example, int *ms, struct wlb_error *error)
{
	char *end;
	long number = strtol(value, &end, 10);
	if (*value == '\0' || *end != '\0' || number < 1 || number > most_ms)
		return wlb_fail(error, "must be a whole number of milliseconds from 1 to %d, such as %s", most_ms,
		                example);
	*ms = (int)number;
	return 0;
}

static int parse_timeout(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	return parse_ms(value, WLB_SPANK_TIMEOUT_MS, "timeout_ms=100", &args->timeout_ms, error);
}

static int parse_agent_timeout(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	return parse_ms(value, WLB_SPANK_AGENT_TIMEOUT_MOST_MS, "agent_timeout_ms=2000", &args->agent_timeout_ms,
	                error);
}

static int parse_yes_no(const char *value, bool *yes, const char *example, struct wlb_error *error)
{
	bool is_yes = strcmp(value, "yes") == 0;
	if (!is_yes && strcmp(value, "no") != 0)
		return wlb_fail(error, "must be yes or no, such as %s", example);
	*yes = is_yes;
	return 0;
}

static int parse_announce(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	return parse_yes_no(value, &args->announce, "announce=yes", error);
}

static int parse_end_stuck_stepd(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	return parse_yes_no(value, &args->end_stuck_stepd, "end_stuck_stepd=yes", error);
}

static int parse_path(const char *value, char *path, size_t size, const char *example, struct wlb_error *error)
{
	if (value[0] != '/' || strlen(value) >= size)
		return wlb_fail(error, "must be an absolute path of at most %zu characters, such as %s", size - 1,
		                example);
	snprintf(path, size, "%s", value);
	return 0;
}

static int parse_munge_socket(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	return parse_path(value, args->client.munge_socket, sizeof(args->client.munge_socket),
	                  "/run/munge/munge.socket.2", error);
}

static int parse_state_dir(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	return parse_path(value, args->state_dir, sizeof(args->state_dir), STATE_DIR, error);
}

static int parse_wlb(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	return parse_path(value, args->wlb, sizeof(args->wlb), WLB_COMMAND, error);
}

static int parse_agent(const char *value, struct wlb_spank_args *args, struct wlb_error *error)
{
	bool none = strcmp(value, "no") == 0;
	if (!none && (value[0] != '/' || strlen(value) >= sizeof(args->agent)))
		return wlb_fail(
			error,
			"must be no, or an absolute path of at most %zu characters, such as agent=" WLB_AGENT_PATH,
			sizeof(args->agent) - 1);
	snprintf(args->agent, sizeof(args->agent), "%s", none ? "" : value);
	return 0;
}

static int parse_argument(const char *argument, struct wlb_spank_args *args, struct wlb_error *error)
{
	static const struct {
		const char *key;
		int (*parse)(const char *value, struct wlb_spank_args *args, struct wlb_error *error);
	} keys[] = {
		{"coordinator=", parse_coordinator},
		{"munge_socket=", parse_munge_socket},
		{"coordinator_user=", parse_coordinator_user},
		{"timeout_ms=", parse_timeout},
		{"agent_timeout_ms=", parse_agent_timeout},
		{"announce=", parse_announce},
		{"agent=", parse_agent},
		{"state_dir=", parse_state_dir},
		{"wlb=", parse_wlb},
		{"end_stuck_stepd=", parse_end_stuck_stepd},
	};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t length = strlen(keys[i].key);
		if (strncmp(argument, keys[i].key, length) == 0)
			return keys[i].parse(argument + length, args, error);
	}
	return wlb_fail(
		error,
		"must be one of coordinator=HOST:PORT[,HOST:PORT], munge_socket=PATH, coordinator_user=NAME, "
		"timeout_ms=N, "
		"agent_timeout_ms=N, announce=yes|no, agent=PATH|no, state_dir=PATH, wlb=PATH, end_stuck_stepd=yes|no");
}

void wlb_spank_args_parse(int argc, char **argv, struct wlb_spank_args *args)
{
	*args = (struct wlb_spank_args){.timeout_ms = WLB_SPANK_TIMEOUT_MS,
	                                .announce = true,
	                                .end_stuck_stepd = true,
	                                .agent = WLB_AGENT_PATH,
	                                .state_dir = STATE_DIR,
	                                .wlb = WLB_COMMAND};
	for (int i = 0; i < argc; i++) {
		struct wlb_error error;
		if (parse_argument(argv[i], args, &error) == 0 || args->unusable.message[0] != '\0')
			continue;
		wlb_fail_in(&error, "plugstack.conf, spank_wlb.so, argument '%.200s'", argv[i]);
		args->unusable = error;
	}
	if (args->agent_timeout_ms == 0)
		args->agent_timeout_ms = args->timeout_ms;
}

void wlb_spank_args_report(const struct wlb_spank_args *args)
{
	if (args->unusable.message[0] != '\0')
		slurm_error("wlb: %s", args->unusable.message);
}
