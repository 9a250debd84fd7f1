#include "coordinator/wlb/run_name.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/wlb/api.h"

static int check(const char *name, struct wlb_error *error)
{
	size_t length = strlen(name);
	if (length < 1 || length >= WLB_RUN_NAME_BYTES ||
	    strspn(name, "0123456789._+-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != length)
		return wlb_fail(error,
		                "run '%.60s': must be a run's name such as 12, 12.2 or 12_1, or last, your newest run; "
		                "'wlb runs' lists them",
		                name);
	return 0;
}

/* The coordinator names a user whom its host does not know by the number. */
static void find_user(char *user, size_t size)
{
	const struct passwd *entry = getpwuid(geteuid());
	if (entry != NULL)
		snprintf(user, size, "%s", entry->pw_name);
	else
		snprintf(user, size, "%u", (unsigned)geteuid());
}

static int find_last(char name[WLB_RUN_NAME_BYTES], struct wlb_error *error)
{
	char path[1024] = "/v1/runs?limit=1", user[256];
	find_user(user, sizeof(user));
	wlb_api_query(path, sizeof(path), "user", user);
	json_t *reply = wlb_api_get(path, error);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	const char *found =
		json_string_value(json_object_get(json_array_get(json_object_get(reply, "runs"), 0), "run_id"));
	int rc = WLB_EXIT_DONE;
	if (found == NULL) {
		wlb_fail(error, "last: user %s has no run; 'wlb runs' lists those of all users", user);
		rc = WLB_EXIT_FAILED;
	} else if (check(found, error) != 0) {
		rc = WLB_EXIT_FAILED;
	} else {
		snprintf(name, WLB_RUN_NAME_BYTES, "%s", found);
	}
	json_decref(reply);
	return rc;
}

int wlb_run_name_find(const char *given, char name[WLB_RUN_NAME_BYTES], struct wlb_error *error)
{
	if (strcmp(given, "last") == 0)
		return find_last(name, error);
	if (check(given, error) != 0)
		return WLB_EXIT_USAGE;
	snprintf(name, WLB_RUN_NAME_BYTES, "%s", given);
	return WLB_EXIT_DONE;
}
