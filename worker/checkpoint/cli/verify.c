/* wlb ckpt verify */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/show.h"
#include "worker/checkpoint/cli/commands.h"
#include "worker/checkpoint/cli/summary.h"
#include "worker/checkpoint/cli/target.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/safetensors.h"

struct request {
	struct wlb_option_list paths;
};

static void print_intact(const struct wlb_checkpoint_summary *s)
{
	char size[64];
	wlb_checkpoint_size_format(s, size, sizeof(size));
	if (s->unsummed == 0)
		wlb_show_line(stdout, "%s: intact, %s", s->path, size);
	else
		wlb_show_line(stdout,
		              "%s: complete, %s; an earlier version saved it without checksums of %d of its %d "
		              "tensors, whose data cannot be compared",
		              s->path, size, s->unsummed, s->tensors);
}

/* Reads all data of a checkpoint, one chunk after the other, and prints a line. Returns 0 where it is intact. */
static int verify(const char *path)
{
	struct wlb_checkpoint_summary s;
	wlb_checkpoint_summarize(path, &s);
	if (s.state == 0)
		s.state = wlb_checkpoint_verify(path, 0, 1, &s.why);
	if (s.state == 0)
		print_intact(&s);
	else if (access(path, F_OK) < 0 && errno == ENOENT)
		wlb_show_line(stdout, "%s: removed meanwhile", s.path);
	else
		wlb_show_line(stdout, "%s: %s: %s", s.path,
		              s.state == WLB_DAMAGED ? "damaged" : wlb_checkpoint_state_name(&s), s.why.message);
	fflush(stdout); /* the next one may take long */
	return s.state;
}

/* Verifies the checkpoints of a directory, newest first. Returns an exit code. */
static int verify_all(const char *dir, struct wlb_error *error)
{
	int64_t *steps;
	int count = wlb_folder_steps(dir, &steps, error), code = WLB_EXIT_DONE;
	if (count < 0)
		return WLB_EXIT_FAILED;
	if (count == 0) {
		wlb_fail(error, "%s: has no checkpoints", dir);
		code = WLB_EXIT_USAGE;
	}
	for (int i = 0; i < count; i++) {
		char path[4096];
		/* A run that saves into the directory removes old ones meanwhile. */
		if (wlb_folder_path(dir, steps[i], WLB_FOLDER_FINAL, path, error) < 0 ||
		    (verify(path) != 0 && access(path, F_OK) == 0))
			code = WLB_EXIT_FAILED;
	}
	free(steps);
	return code;
}

static int verify_paths(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	int code = WLB_EXIT_DONE;
	for (int i = 0; i < request->paths.count; i++)
		if (wlb_target_check(request->paths.texts[i], error) < 0)
			return WLB_EXIT_USAGE;
	for (int i = 0; i < request->paths.count && code != WLB_EXIT_USAGE; i++) {
		const char *path = request->paths.texts[i];
		if (!wlb_target_is_checkpoint(path)) {
			int of_dir = verify_all(path, error);
			code = of_dir > code ? of_dir : code;
		} else if (verify(path) != 0) {
			code = WLB_EXIT_FAILED;
		}
	}
	return code;
}

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, offsetof(struct request, paths), "DIR...",
                    "checkpoints, DIR/step_N, and directories of several"),
         .required = true},
};

static const struct wlb_option_table table = {
	.command = "wlb ckpt verify",
	.about = "Reads all data of checkpoints and compares them with their checksums. Of one that is damaged or not "
		 "complete it names the first file and tensor that are; the exit code is 1 then.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_ckpt_verify = {
	.name = "verify",
	.summary = "Compare the data of checkpoints with their checksums",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = verify_paths,
};
