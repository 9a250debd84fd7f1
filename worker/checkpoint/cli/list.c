/* wlb ckpt list */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json_text.h"
#include "common/output/bytes_text.h"
#include "common/output/printable.h"
#include "common/output/table.h"
#include "common/output/terminal.h"
#include "common/show.h"
#include "worker/checkpoint/cli/commands.h"
#include "worker/checkpoint/cli/summary.h"
#include "worker/checkpoint/cli/target.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/save_lock.h"

struct request {
	const char *dir;
	bool json;
};

/* What a directory has. */
struct contents {
	const char *dir;
	int64_t *steps; /* newest first */
	int step_count;
	struct dirent **hidden; /* folders that are no checkpoints: partial, or left behind */
	int hidden_count;
	char owner[512]; /* of the lock; empty where nobody has it */
};

static void free_contents(struct contents *c)
{
	free(c->steps);
	wlb_folder_list_free(c->hidden, c->hidden_count);
}

static int read_contents(struct contents *c, struct wlb_error *error)
{
	c->step_count = wlb_folder_steps(c->dir, &c->steps, error);
	if (c->step_count < 0)
		return -1;
	int count = wlb_folder_list_hidden(c->dir, &c->hidden, error);
	c->hidden_count = count > 0 ? count : 0;
	if (count < 0 || !wlb_save_lock_find_owner(c->dir, c->owner))
		c->owner[0] = '\0';
	return count < 0 ? -1 : 0;
}

static int summarize(const struct contents *c, int i, struct wlb_checkpoint_summary *s, struct wlb_error *error)
{
	char path[4096];
	if (wlb_folder_path(c->dir, c->steps[i], WLB_FOLDER_FINAL, path, error) < 0)
		return -1;
	wlb_checkpoint_summarize(path, s);
	return 0;
}

/* When the hidden folder was last written to; -1 where that is not known. */
static time_t changed(const struct contents *c, int i)
{
	char path[4096 + 256];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", c->dir, c->hidden[i]->d_name);
	return stat(path, &st) == 0 ? st.st_mtime : -1;
}

static void add_row(struct wlb_table *table, const struct wlb_checkpoint_summary *s)
{
	char step[32], saved[32], size[32] = "-", shards[32] = "-", loss[32] = "-";
	snprintf(step, sizeof(step), "%lld", (long long)s->step);
	wlb_checkpoint_time_format(s->saved, saved, sizeof(saved));
	if (s->has_facts) {
		wlb_bytes_format(s->bytes, size, sizeof(size));
		snprintf(shards, sizeof(shards), "%d", s->shards);
		snprintf(loss, sizeof(loss), "%.4f", s->facts.train_loss);
	}
	wlb_table_add(table, (const char *const[]){step, saved, size, shards, loss, wlb_checkpoint_state_name(s)});
	if (s->state != 0)
		wlb_table_note(table, s->why.message);
}

static int print_checkpoints(const struct contents *c, struct wlb_error *error)
{
	struct wlb_table table = {.columns = 6, .right = "rlrrrl", .note_columns = wlb_terminal_columns()};
	struct wlb_checkpoint_summary *s = malloc(sizeof(*s));
	int rc = s != NULL ? 0 : -1;
	wlb_table_add(&table, (const char *const[]){"STEP", "SAVED", "SIZE", "SHARDS", "LOSS", "STATE"});
	for (int i = 0; rc == 0 && i < c->step_count; i++)
		if ((rc = summarize(c, i, s, error)) == 0)
			add_row(&table, s);
	free(s);
	if (wlb_table_print(&table, "", stdout) < 0 || s == NULL)
		return wlb_fail(error, "out of memory for the list");
	return rc;
}

static const char *what_it_is(const char *name)
{
	if (strstr(name, ".replaced") != NULL)
		return "an old checkpoint that was being removed";
	return "being written, or left by a writer that was killed";
}

static int print(const struct contents *c, struct wlb_error *error)
{
	if (c->step_count == 0)
		wlb_show_line(stdout, "%s: has no checkpoints", c->dir);
	else if (print_checkpoints(c, error) < 0)
		return -1;
	for (int i = 0; i < c->hidden_count; i++) {
		char when[32];
		wlb_checkpoint_time_format(changed(c, i), when, sizeof(when));
		wlb_show_line(stdout, "%s: %s, last changed %s", c->hidden[i]->d_name, what_it_is(c->hidden[i]->d_name),
		              when);
	}
	if (c->owner[0] != '\0')
		wlb_show_line(stdout, "%s has the directory's lock", c->owner);
	return 0;
}

static int print_json(const struct contents *c, struct wlb_error *error)
{
	struct wlb_checkpoint_summary *s = malloc(sizeof(*s));
	json_t *checkpoints = json_array(), *hidden = json_array();
	int rc = s != NULL ? 0 : wlb_fail(error, "out of memory for the report");
	for (int i = 0; rc == 0 && i < c->step_count; i++)
		if ((rc = summarize(c, i, s, error)) == 0)
			json_array_append_new(checkpoints, wlb_checkpoint_summary_json(s));
	free(s);
	for (int i = 0; i < c->hidden_count; i++)
		json_array_append_new(hidden, json_pack("{s:o, s:o}", "name", wlb_json_text(c->hidden[i]->d_name),
		                                        "changed_at", wlb_checkpoint_time_json(changed(c, i))));
	json_t *report = json_pack("{s:o, s:o, s:o, s:o}", "directory", wlb_json_text(c->dir), "locked_by",
	                           c->owner[0] != '\0' ? wlb_json_text(c->owner) : json_null(), "checkpoints",
	                           checkpoints, "left_behind", hidden);
	if (rc == 0)
		return wlb_json_print_report(report, error);
	json_decref(report);
	return -1;
}

static int list(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct contents contents = {.dir = request->dir};
	if (wlb_target_check_parent(request->dir, error) < 0)
		return WLB_EXIT_USAGE;
	int rc = read_contents(&contents, error);
	if (rc == 0)
		rc = request->json ? print_json(&contents, error) : print(&contents, error);
	free_contents(&contents);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(dir), "DIR", "the directory that --save of a run names"), .required = true},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL,
                    "one JSON object instead of text: directory, locked_by, checkpoints, left_behind")},
};

static const struct wlb_option_table table = {
	.command = "wlb ckpt list",
	.about = "Lists the checkpoints of a directory, the newest first, and folders in it that are partial or left "
		 "behind. Manifests, sizes and headers are checked; 'wlb ckpt verify' reads the data too.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_ckpt_list = {
	.name = "list",
	.summary = "List the checkpoints of a directory",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = list,
};
