/* wlb-export, which `wlb export` starts: a checkpoint as a published model. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/command.h"
#include "common/file.h"
#include "common/output/bytes_text.h"
#include "common/show.h"
#include "worker/checkpoint/cli/export_config.h"
#include "worker/checkpoint/cli/export_weights.h"
#include "worker/checkpoint/cli/target.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/manifest.h"

struct request {
	struct wlb_option_list paths; /* of the checkpoint, and of the folder that is made */
	const char *from;
	int dtype; /* index into dtypes */
	double file_gb;
};

static const enum wlb_dtype dtypes[] = {WLB_BFLOAT16, WLB_FLOAT32};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* Whatever ends the export early must let it remove what it has written. */
static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is then an error of write(2) */
}

/* A published model has no moments. */
static void drop_moments(struct wlb_weights *w)
{
	int kept = 0;
	for (int i = 0; i < w->block_count; i++) {
		if (strncmp(w->blocks[i].name, "optimizer.", strlen("optimizer.")) == 0)
			free(w->blocks[i].name);
		else
			w->blocks[kept++] = w->blocks[i];
	}
	w->block_count = kept;
}

/* Writes all files into the folder, once the weights are known to be those that were saved. */
static int fill_folder(const struct request *r, const char *checkpoint, const char *folder,
                       struct wlb_export_result *result, struct wlb_error *error)
{
	struct wlb_checkpoint_facts facts;
	struct wlb_weights weights = {0};
	const struct wlb_export_request request = {
		.folder = folder,
		.model = &facts.model,
		.dtype = dtypes[r->dtype],
		.most_bytes = (int64_t)(r->file_gb * 1e9),
		.is_interrupted = &interrupted,
	};
	int rc = wlb_manifest_read(checkpoint, &facts, &weights, NULL, error);
	drop_moments(&weights);
	if (rc == 0)
		rc = wlb_export_check_config(r->from, &facts, error);
	if (rc == 0)
		rc = wlb_weights_verify(&weights, 0, 1, error);
	if (rc == 0)
		rc = wlb_export_weights(&weights, &request, result, error);
	if (rc == 0)
		rc = wlb_export_config(r->from, &facts, request.dtype, folder, error);
	wlb_weights_free(&weights);
	return rc == 0 ? 0 : -1;
}

/* Makes a new folder beside `path`, in which the files are until all are written. */
static char *make_partial(const char *path, struct wlb_error *error)
{
	char *partial;
	mode_t mask = umask(0);
	umask(mask);
	if (asprintf(&partial, "%s.partial.XXXXXX", path) < 0) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	if (mkdtemp(partial) != NULL && chmod(partial, 0777 & ~mask) == 0)
		return partial;
	wlb_fail(error, "%s: cannot be created: %s", partial, strerror(errno));
	free(partial);
	return NULL;
}

/* An empty folder of that name is replaced. */
static int publish(const char *partial, const char *path, struct wlb_error *error)
{
	if (wlb_dir_sync(partial, error) < 0)
		return -1;
	if (rename(partial, path) < 0)
		return wlb_fail(error, "%s: cannot be made: %s%s", path, strerror(errno),
		                errno == ENOTEMPTY || errno == EEXIST ? ": remove it, or name another folder" : "");
	return wlb_parent_sync(path, error);
}

static int check_new(const char *path, struct wlb_error *error)
{
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, NULL, NULL), cause = errno;
	wlb_folder_list_free(entries, count);
	if (count < 0 && cause == ENOENT)
		return 0;
	if (count >= 0 && count <= 2) /* "." and ".." */
		return 0;
	return wlb_fail(error, "%s: %s: name a new folder, or remove this one", path,
	                count < 0 ? strerror(cause) : "is not empty");
}

static int export_to(const struct request *r, const char *checkpoint, const char *path, struct wlb_error *error)
{
	struct wlb_export_result result;
	char size[32];
	char *partial = make_partial(path, error);
	if (partial == NULL)
		return WLB_EXIT_FAILED;
	int rc = fill_folder(r, checkpoint, partial, &result, error);
	if (rc == 0)
		rc = publish(partial, path, error);
	if (rc < 0)
		wlb_folder_remove(partial, NULL);
	free(partial);
	if (rc < 0)
		return WLB_EXIT_FAILED;
	wlb_bytes_format(result.bytes, size, sizeof(size));
	wlb_show_line(stdout, "%s: %d tensors in %s, %s in %d file%s, from %s", path, result.tensors,
	              wlb_dtype_name(dtypes[r->dtype]), size, result.files, result.files == 1 ? "" : "s", checkpoint);
	return WLB_EXIT_DONE;
}

static int export_checkpoint(void *values, struct wlb_error *error)
{
	const struct request *r = values;
	char checkpoint[4096];
	if (r->paths.count != 2) {
		wlb_fail(error, "%d paths: give two, a checkpoint and the folder that is made", r->paths.count);
		return WLB_EXIT_USAGE;
	}
	char *path = r->paths.texts[1];
	for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
		path[end - 1] = '\0';
	int code = wlb_target_choose(r->paths.texts[0], checkpoint, error);
	if (code != WLB_EXIT_DONE)
		return code;
	if (check_new(path, error) < 0)
		return WLB_EXIT_USAGE;
	catch_signals();
	return export_to(r, checkpoint, path, error);
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(paths), "CKPT DIR",
                    "a checkpoint, DIR/step_N, or the directory of several: then the newest that is complete; and the "
                    "folder that is made, which must not be there or be empty"),
         .required = true},
	{WLB_OPTION(CHOICE, "dtype", FIELD(dtype), NULL,
                    "element type of the weights, to which they are rounded (to the nearest, of two to the even one)"),
         .choices = "bf16|fp32", .initial = "bf16"},
	{WLB_OPTION(TEXT, "from", FIELD(from), "DIR",
                    "the folder of a published model of the same shape, such as the one that --init-from named: its "
                    "config.json, generation_config.json and files of a tokenizer are copied; without it config.json "
                    "is made of what the checkpoint says, and there is no tokenizer")},
	{WLB_OPTION(REAL, "max-file-gb", FIELD(file_gb), "X",
                    "most data of a file, in 10^9 bytes; more are divided into several files, with an index"),
         .min = 1e-6, .max = 5, .rule = "a number from 1e-6 to 5", .initial = "5"},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version and exit")},
};

static const struct wlb_option_table table = {
	.command = "wlb export",
	.about = "Makes of a checkpoint of wlb-worker the folder of a published model, as Hugging Face has it, which "
		 "Transformers and other programs load. The data of the checkpoint are compared with their checksums.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

int main(int argc, char **argv)
{
	static const struct wlb_command command = {
		.options = &table, .values_bytes = sizeof(struct request), .run = export_checkpoint};
	setlocale(LC_CTYPE, ""); /* for the widths of characters */
	return wlb_command_main(&command, argc, argv);
}
