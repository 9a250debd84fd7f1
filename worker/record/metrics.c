#include "worker/record/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/data/file_progress.h"

struct wlb_metrics {
	int fd;
	char *path;
};

double wlb_step_tokens_per_s(const struct wlb_step_facts *facts)
{
	return facts->step_time_s > 0.0 ? (double)facts->tokens / facts->step_time_s : 0.0;
}

static json_t *parts_json(const struct wlb_step_facts *facts)
{
	json_t *object = json_object();
	for (int i = 0; i < WLB_STEP_PARTS; i++)
		json_object_set_new(object, wlb_step_part_name((enum wlb_step_part)i), json_real(facts->time_s[i]));
	return object;
}

static json_t *numbers_json(const double *numbers, int count)
{
	json_t *array = json_array();
	for (int i = 0; i < count; i++)
		json_array_append_new(array, json_real(numbers[i]));
	return array;
}

/* JSON has neither NaN nor infinities. */
static json_t *number_json(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

char *wlb_step_json(const struct wlb_step_facts *facts, int with_ranks, struct wlb_error *error)
{
	json_t *object = json_pack(
		"{s:I, s:o, s:o, s:f, s:I, s:i, s:f, s:f, s:I, s:o, s:f, s:f}", "step", (json_int_t)facts->step, "loss",
		number_json(facts->loss), "grad_norm", number_json(facts->grad_norm), "lr", facts->lr, "tokens",
		(json_int_t)facts->tokens, "documents", facts->documents, "step_time_s", facts->step_time_s,
		"tokens_per_s", wlb_step_tokens_per_s(facts), "held_tokens", (json_int_t)facts->held_tokens, "parts",
		parts_json(facts), "predicted_imbalance", facts->predicted_imbalance, "imbalance", facts->imbalance);
	if (object != NULL && facts->memory_bytes > 0)
		json_object_set_new(object, "memory_bytes", json_integer(facts->memory_bytes));
	if (object != NULL && facts->loss_tokens < facts->tokens)
		json_object_set_new(object, "loss_tokens", json_integer(facts->loss_tokens));
	if (object != NULL && facts->is_skipped)
		json_object_set_new(object, "is_skipped", json_true());
	if (object != NULL && (with_ranks || facts->is_in_ramp))
		json_object_set_new(object, "global_batch_size", json_integer(facts->windows));
	if (with_ranks && object != NULL) {
		json_object_set_new(object, "rank_work", numbers_json(facts->rank_work, facts->ranks));
		json_object_set_new(object, "rank_compute_s", numbers_json(facts->rank_compute_s, facts->ranks));
	}
	char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (text == NULL)
		wlb_fail(error, "step %lld: its numbers cannot be written as JSON (loss %g)", (long long)facts->step,
		         facts->loss);
	return text;
}

struct wlb_metrics *wlb_metrics_open(const char *path, struct wlb_error *error)
{
	struct wlb_metrics *metrics = calloc(1, sizeof(*metrics));
	if (metrics == NULL) {
		wlb_fail(error, "out of memory for the metrics file");
		return NULL;
	}
	metrics->path = strdup(path);
	metrics->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (metrics->path != NULL && metrics->fd >= 0)
		return metrics;
	int why = errno;
	wlb_fail(error, "--metrics-file %.500s: it cannot be opened for writing: %s", path, strerror(why));
	wlb_metrics_close(metrics);
	errno = why;
	return NULL;
}

int wlb_metrics_write(struct wlb_metrics *metrics, const char *json, struct wlb_error *error)
{
	char *line = NULL;
	int length = asprintf(&line, "%s\n", json);
	if (length < 0)
		return wlb_fail(error, "out of memory for a line of metrics");
	struct stat before;
	wlb_file_report("writing", metrics->path);
	int rc = fstat(metrics->fd, &before);
	/* A regular file takes the line in one write unless the disk is full; then the part that was written is
	 * removed. */
	ssize_t written = rc == 0 ? write(metrics->fd, line, (size_t)length) : -1;
	int cause = errno;
	free(line);
	if (written > 0 && written < length) {
		cause = ENOSPC;
		rc = S_ISREG(before.st_mode) ? ftruncate(metrics->fd, before.st_size) : 0;
	}
	wlb_file_report_end();
	if (written == length)
		return 0;
	return wlb_fail(error, "metrics file %.500s: a line cannot be written%s: %s", metrics->path,
	                rc == 0 ? "" : " whole", strerror(cause));
}

void wlb_metrics_close(struct wlb_metrics *metrics)
{
	if (metrics == NULL)
		return;
	if (metrics->fd >= 0)
		close(metrics->fd);
	free(metrics->path);
	free(metrics);
}

void wlb_metrics_print(const struct wlb_step_facts *f, int64_t train_iters)
{
	printf("step %lld/%lld | loss %.4f | grad norm %.3f | lr %.2e | %lld tokens | %.2f s | %.0f tokens/s%s\n",
	       (long long)f->step, (long long)train_iters, f->loss, f->grad_norm, f->lr, (long long)f->tokens,
	       f->step_time_s, wlb_step_tokens_per_s(f), f->is_skipped ? " | skipped" : "");
	fflush(stdout);
}

char *wlb_evaluation_json(const struct wlb_evaluation_facts *f, struct wlb_error *error)
{
	json_t *object =
		json_pack("{s:I, s:o, s:I, s:f}", "step", (json_int_t)f->step, "eval_loss", number_json(f->loss),
	                  "eval_tokens", (json_int_t)f->tokens, "eval_time_s", f->duration_s);
	char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (text == NULL)
		wlb_fail(error, "out of memory for the evaluation after step %lld", (long long)f->step);
	return text;
}

void wlb_evaluation_print(const struct wlb_evaluation_facts *f)
{
	printf("evaluation after step %lld | loss %.4f | %lld tokens | %.2f s\n", (long long)f->step, f->loss,
	       (long long)f->tokens, f->duration_s);
	fflush(stdout);
}
