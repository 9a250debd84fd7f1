#include "coordinator/wlb/run/attempt/output_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json_text.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/command/launcher.h"
#include "coordinator/wlb/run/state/record.h"

enum { COMMAND_BYTES = 4096 }; /* of the coordinator, too */

/* An option of srun: as a word, and as the variable that srun reads where the word is not given. */
struct srun_option {
	const char *name, *letter, *variable;
};

/* Returns the value of the last word of that option; NULL: it is not given. */
static const char *find_value(const struct wlb_run_options *options, const struct srun_option *option)
{
	size_t name = strlen(option->name), letter = strlen(option->letter);
	const char *value = getenv(option->variable);
	for (int i = 0; i < options->srun_arg_count; i++) {
		const char *word = options->srun_args[i];
		const char *next = i + 1 < options->srun_arg_count ? options->srun_args[i + 1] : NULL;
		if (strncmp(word, option->name, name) == 0 && word[name] == '=')
			value = word + name + 1;
		else if (strncmp(word, option->letter, letter) == 0 && word[1] != '-' && word[letter] != '\0')
			value = word + letter;
		else if ((strcmp(word, option->name) == 0 || strcmp(word, option->letter) == 0) && next != NULL)
			value = next;
	}
	return value;
}

static bool is_labelled(const struct wlb_run_options *options)
{
	const char *variable = getenv("SLURM_LABELIO");
	bool is = variable != NULL && *variable != '\0' && strcmp(variable, "0") != 0;
	for (int i = 0; i < options->srun_arg_count; i++)
		is = is || strcmp(options->srun_args[i], "--label") == 0 || strcmp(options->srun_args[i], "-l") == 0;
	return is;
}

static void note_size(struct wlb_output_file *file)
{
	struct stat status;
	file->offset = -1;
	if (file->path[0] == '\0' || strchr(file->path, '%') != NULL)
		return;
	if (stat(file->path, &status) == 0)
		file->offset = S_ISREG(status.st_mode) ? (int64_t)status.st_size : -1;
	else
		file->offset = 0;
}

static void set_path(struct wlb_output_file *file, const char *path)
{
	char folder[PATH_MAX] = "";
	if (path[0] != '/' && getcwd(folder, sizeof(folder)) == NULL)
		return;
	if (snprintf(file->path, sizeof(file->path), "%s%s%s", folder, path[0] != '/' ? "/" : "", path) >=
	    (int)sizeof(file->path))
		file->path[0] = '\0';
}

/* Where this process writes, which srun writes through it. */
static bool find_own(int fd, struct wlb_output_file *file)
{
	char link[32], path[PATH_MAX];
	struct stat status;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink == 0 || length < 0)
		return false;
	path[length] = '\0';
	snprintf(file->path, sizeof(file->path), "%s", path);
	return true;
}

/* `all`, and the number of a task, leave the output to srun's own; `none` discards it. Returns whether it is decided.
 */
static bool take_given(const char *value, struct wlb_output_file *file)
{
	if (value == NULL || *value == '\0' || strcmp(value, "all") == 0 ||
	    strspn(value, "0123456789") == strlen(value))
		return false;
	if (strcmp(value, "none") != 0)
		set_path(file, value);
	return true;
}

void wlb_run_output_files(const struct wlb_run *run, struct wlb_output_files *files)
{
	static const struct srun_option out = {"--output", "-o", "SLURM_STDOUTMODE"};
	static const struct srun_option error = {"--error", "-e", "SLURM_STDERRMODE"};
	const char *out_value = find_value(&run->options, &out), *error_value = find_value(&run->options, &error);
	char job_out[PATH_MAX] = "", job_error[PATH_MAX] = "";
	*files = (struct wlb_output_files){.is_labelled = is_labelled(&run->options)};
	bool has_out = take_given(out_value, &files->out), has_error = take_given(error_value, &files->error);
	/* srun's standard error goes with its --output where it has no --error. */
	if (has_out && !has_error) {
		files->error = files->out;
		has_error = true;
	}
	has_out = has_out || find_own(STDOUT_FILENO, &files->out);
	has_error = has_error || find_own(STDERR_FILENO, &files->error);
	if (!has_out || !has_error)
		wlb_slurm_job_output(run->job.job_id, job_out, job_error, sizeof(job_out));
	if (!has_out)
		set_path(&files->out, job_out);
	if (!has_error)
		set_path(&files->error, job_error);
	note_size(&files->out);
	note_size(&files->error);
}

static void put_file(json_t *data, const char *key, const struct wlb_output_file *file)
{
	char offset[32];
	if (file->path[0] == '\0')
		return;
	json_object_set_new(data, key, wlb_json_text(file->path));
	snprintf(offset, sizeof(offset), "%s_offset", key);
	if (file->offset >= 0)
		json_object_set_new(data, offset, json_integer(file->offset));
}

void wlb_run_record_command(const struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_reporter *reporter)
{
	static struct wlb_output_files files;
	char line[COMMAND_BYTES + 1];
	if (reporter == NULL)
		return;
	wlb_run_output_files(run, &files);
	wlb_launcher_line(attempt->command != NULL ? attempt->command : run->options.command, line, sizeof(line));
	json_t *data = json_pack("{s:o, s:b}", "command", wlb_json_text(line), "labelled", files.is_labelled);
	put_file(data, "stdout", &files.out);
	put_file(data, "stderr", &files.error);
	wlb_run_record(reporter, "command", data);
}
