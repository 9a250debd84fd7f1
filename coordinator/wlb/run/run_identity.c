#include "coordinator/wlb/run/run_identity.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/wlb/run/journal.h"
#include "libwlb/hash.h"

enum { KEY_BYTES = 32 };

/* With its NUL: the words of two commands can be the same text when they are joined. */
static uint64_t add_text(uint64_t digest, const char *text)
{
	return wlb_hash_bytes(digest, text, strlen(text) + 1);
}

static void write_key(char *const *command, char key[KEY_BYTES])
{
	char here[PATH_MAX];
	uint64_t digest = add_text(WLB_HASH_OF_NOTHING, getcwd(here, sizeof(here)) != NULL ? here : "");
	for (int i = 0; command[i] != NULL; i++)
		digest = add_text(digest, command[i]);
	snprintf(key, KEY_BYTES, "command %016" PRIx64, digest);
}

static json_t *new_entry(const char *key)
{
	return json_pack("{s:s, s:b}", "key", key, "is_used", 1);
}

static bool has_key(const json_t *runs, int index, const char *key)
{
	return strcmp(json_string_value(json_object_get(json_array_get(runs, (size_t)index), "key")), key) == 0;
}

static bool is_used(const json_t *runs, int index)
{
	return json_is_true(json_object_get(json_array_get(runs, (size_t)index), "is_used"));
}

/* The numbers up to this one may be in use in this start of the job. */
static int highest(const json_t *content)
{
	json_int_t number = json_integer_value(json_object_get(content, "highest"));
	return number < INT_MAX ? (int)number : INT_MAX - 1;
}

static void raise_highest(json_t *content, int number)
{
	if (number > highest(content))
		json_object_set_new(content, "highest", json_integer(number));
}

/* Returns the index of the run that goes on; the number of entries or more for one that begins. */
static int choose(const json_t *content, const char *key)
{
	const json_t *runs = json_object_get(content, "runs");
	int count = (int)json_array_size(runs), used = 0;
	for (int i = 0; i < count; i++) {
		if (has_key(runs, i, key) && !is_used(runs, i))
			return i;
		used += is_used(runs, i);
	}
	if (used < count && !is_used(runs, used))
		return used;
	return highest(content) > count ? highest(content) : count;
}

/* Returns the number that the run has now. */
static int take(json_t *content, const char *key)
{
	json_t *runs = json_object_get(content, "runs");
	int index = choose(content, key);
	json_t *entry = json_array_get(runs, (size_t)index);
	if (entry != NULL)
		json_object_update_new(entry, new_entry(key));
	else if (index < WLB_RUN_JOURNAL_RUNS_MAX)
		json_array_append_new(runs, new_entry(key));
	raise_highest(content, index + 1);
	return index + 1;
}

/* Gives the entry of `number` the number `given`, unless another run of this directory has it. Returns whether it did.
 */
static bool move(json_t *content, const char *key, int number, int given)
{
	json_t *runs = json_object_get(content, "runs");
	if (is_used(runs, given - 1))
		return false;
	while ((int)json_array_size(runs) < given && json_array_size(runs) < WLB_RUN_JOURNAL_RUNS_MAX)
		json_array_append_new(runs, new_entry(WLB_RUN_JOURNAL_ELSEWHERE));
	json_t *entry = json_incref(json_array_get(runs, (size_t)number - 1));
	if (entry != NULL && has_key(runs, number - 1, key)) {
		json_array_set_new(runs, (size_t)number - 1, new_entry(WLB_RUN_JOURNAL_ELSEWHERE));
	} else {
		json_decref(entry);
		entry = new_entry(key);
	}
	if (given <= (int)json_array_size(runs))
		json_array_set(runs, (size_t)given - 1, entry);
	json_decref(entry);
	raise_highest(content, given);
	return true;
}

int wlb_run_identify(struct wlb_run *run, struct wlb_error *error)
{
	char key[KEY_BYTES];
	struct wlb_error cause;
	run->launch = run->journal.number = 1;
	if (run->journal.fd < 0)
		return 0; /* which was said when it was opened */
	write_key(run->options.command, key);
	json_t *content = wlb_run_journal_begin(run, &cause);
	if (content != NULL)
		run->launch = take(content, key);
	int rc = wlb_run_journal_work_as(run, run->launch, &cause);
	if (content == NULL)
		return wlb_run_journal_fail(&cause, error);
	if (wlb_run_journal_end(run, content, rc == 0 ? &cause : NULL) != 0)
		rc = -1;
	return rc == 0 ? 0 : wlb_run_journal_fail(&cause, error);
}

int wlb_run_identity_move(struct wlb_run *run, int given, struct wlb_error *error)
{
	char key[KEY_BYTES];
	struct wlb_error cause;
	write_key(run->options.command, key);
	json_t *content = wlb_run_journal_begin(run, &cause);
	if (content == NULL)
		return wlb_run_journal_fail(&cause, error);
	if (move(content, key, run->journal.number, given))
		wlb_run_journal_work_as(run, given, NULL);
	run->launch = given;
	return wlb_run_journal_end(run, content, &cause) == 0 ? 0 : wlb_run_journal_fail(&cause, error);
}
