#include "coordinator/wlb/run/state/run_identity.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/print.h"
#include "libwlb/hash.h"

enum { NAME_BYTES_MAX = 63, KEY_BYTES = NAME_BYTES_MAX + 16 };

static const char of_command[] = "command ";

/* With its NUL: the words of two commands can be the same text when they are joined. */
static uint64_t add_text(uint64_t digest, const char *text)
{
	return wlb_hash_bytes(digest, text, strlen(text) + 1);
}

static void write_key(const struct wlb_run_options *options, char key[KEY_BYTES])
{
	char here[PATH_MAX];
	char *const *command = options->command;
	if (options->name != NULL) {
		snprintf(key, KEY_BYTES, "name %s", options->name);
		return;
	}
	uint64_t digest = add_text(WLB_HASH_OF_NOTHING, getcwd(here, sizeof(here)) != NULL ? here : "");
	for (int i = 0; command[i] != NULL; i++)
		digest = add_text(digest, command[i]);
	snprintf(key, KEY_BYTES, "%s%016" PRIx64, of_command, digest);
}

static json_t *new_entry(const char *key)
{
	return json_pack("{s:s, s:b}", "key", key, "is_used", 1);
}

static const char *key_of(const json_t *runs, int index)
{
	return json_string_value(json_object_get(json_array_get(runs, (size_t)index), "key"));
}

static bool has_key(const json_t *runs, int index, const char *key)
{
	return strcmp(key_of(runs, index), key) == 0;
}

static bool is_of_command(const char *key)
{
	return strncmp(key, of_command, strlen(of_command)) == 0;
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

/* Returns the index of the run that goes on; the number of entries or more for one that begins. The only run of a job
 * goes on although the words of its command have changed, such as the address of its first node. */
static int choose(const json_t *content, const char *key)
{
	const json_t *runs = json_object_get(content, "runs");
	int count = (int)json_array_size(runs);
	for (int i = 0; i < count; i++)
		if (has_key(runs, i, key) && !is_used(runs, i))
			return i;
	if (count == 1 && !is_used(runs, 0) && is_of_command(key_of(runs, 0)) && is_of_command(key))
		return 0;
	return highest(content) > count ? highest(content) : count;
}

/* Whether another run with this key works at the same time. */
static bool has_equal(const struct wlb_run *run, const json_t *content, const char *key)
{
	const json_t *runs = json_object_get(content, "runs");
	int count = (int)json_array_size(runs);
	for (int i = 0; i < count; i++)
		if (has_key(runs, i, key) && wlb_run_journal_works(run, i + 1))
			return true;
	return false;
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

/* Says what the user should know of the choice. */
static void tell(const struct wlb_run *run, int runs_before, bool is_equal)
{
	if (is_equal)
		wlb_run_print("another `wlb run` with the same command works in this job: after a requeue each may "
		              "continue the run of the other; tell them apart by `wlb run --name NAME`");
	else if (run->job.restart_count > 0 && run->launch > runs_before && runs_before > 0 &&
	         run->options.name == NULL)
		wlb_run_print(
			"no `wlb run` of this job had this command before, so it begins a run of its own; name it, so "
			"that it continues whatever its words are: `wlb run --name NAME`");
}

int wlb_run_identity_check_name(const char *name, struct wlb_error *error)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t length = strlen(name);
	if (length > 0 && length <= NAME_BYTES_MAX && strspn(name, allowed) == length)
		return 0;
	return wlb_fail(error, "--name '%.80s': must have 1 to %d letters, digits, '.', '_' and '-'", name,
	                NAME_BYTES_MAX);
}

/* Gives the run its number, writes the content, and says that the run works. */
static int take_number(struct wlb_run *run, json_t *content, const char *key, struct wlb_error *error)
{
	run->launch = take(content, key);
	int rc = wlb_run_journal_work_as(run, run->launch, error);
	if (wlb_run_journal_end(run, content, rc == 0 ? error : NULL) == 0)
		return rc;
	/* The next run may get the number. */
	wlb_run_journal_work_as(run, WLB_RUN_JOURNAL_NO_ENTRY, NULL);
	return -1;
}

static void tell_failure(const struct wlb_error *cause)
{
	struct wlb_error error;
	wlb_run_journal_fail(cause, &error);
	wlb_run_print("%s", error.message);
}

int wlb_run_identify(struct wlb_run *run, struct wlb_error *error)
{
	char key[KEY_BYTES];
	struct wlb_error cause;
	run->launch = 1;
	if (run->journal.fd < 0)
		return 0; /* which was said when it was opened */
	write_key(&run->options, key);
	json_t *content = wlb_run_journal_begin(run, &cause);
	if (content == NULL) {
		tell_failure(&cause);
		wlb_run_journal_work_as(run, WLB_RUN_JOURNAL_NO_ENTRY, NULL);
		return 0;
	}
	int runs_before = (int)json_array_size(json_object_get(content, "runs"));
	bool is_equal = has_equal(run, content, key);
	if (is_equal && run->options.name != NULL) {
		wlb_run_journal_release(run, content);
		return wlb_fail(error,
		                "--name '%s': another `wlb run` of this job works under this name: give each a name of "
		                "its own",
		                run->options.name);
	}
	if (take_number(run, content, key, &cause) != 0)
		tell_failure(&cause);
	tell(run, runs_before, is_equal);
	return 0;
}

void wlb_run_identity_move(struct wlb_run *run, int given)
{
	char key[KEY_BYTES];
	write_key(&run->options, key);
	json_t *content = wlb_run_journal_begin(run, NULL);
	if (content == NULL)
		return;
	if (move(content, key, run->journal.number, given))
		wlb_run_journal_work_as(run, given, NULL);
	run->launch = given;
	wlb_run_journal_end(run, content, NULL);
}
