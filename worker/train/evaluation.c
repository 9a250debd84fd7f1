#include "worker/train/evaluation.h"

#include "common/seconds.h"

int wlb_evaluation_open(struct wlb_evaluation *e, struct wlb_device *device, const struct wlb_model *model,
                        const struct wlb_loader_options *options, struct wlb_error *error)
{
	e->device = device;
	e->batches = options->last_step;
	e->loader = wlb_loader_new(e->dataset, model, options, device, error);
	e->sum = e->loader != NULL ? device->ops->alloc(device, sizeof(*e->sum), error) : NULL;
	return e->sum != NULL ? 0 : wlb_fail_in(error, "evaluation");
}

void wlb_evaluation_close(struct wlb_evaluation *e)
{
	if (e->device != NULL)
		e->device->ops->release(e->device, e->sum);
	wlb_loader_free(e->loader);
	wlb_dataset_close(e->dataset);
}

/* A wlb_file_await. */
static int await_loader(void *evaluation, double seconds, struct wlb_error *error)
{
	struct wlb_evaluation *e = evaluation;
	return wlb_loader_await(e->loader, seconds, error);
}

/* Adds the loss of the next batch, on all ranks: so no rank waits for the others for longer than a batch takes. */
static int evaluate_batch(struct wlb_evaluation *e, struct wlb_pipeline *pipeline, const struct wlb_file_waiting *files,
                          double *loss_sum, int64_t *tokens, struct wlb_error *error)
{
	const struct wlb_ops *ops = e->device->ops;
	const struct wlb_loaded_step *batch;
	double waited_s, sum;
	if (wlb_await_files(files, await_loader, e, error) < 0 ||
	    wlb_loader_next(e->loader, &batch, &waited_s, error) < 0)
		return -1;
	ops->zero(e->device, e->sum, sizeof(*e->sum));
	if (wlb_pipeline_evaluate(pipeline, batch, e->sum, error) < 0 || ops->synchronize(e->device, error) < 0)
		return -1;
	ops->to_host(e->device, &sum, e->sum, sizeof(sum));
	if (wlb_comm_all_reduce_double(files->world, &sum, 1, WLB_SUM, error) < 0)
		return -1;
	*loss_sum += sum;
	*tokens += batch->loss_tokens;
	return 0;
}

int wlb_evaluation_run(struct wlb_evaluation *e, struct wlb_pipeline *pipeline, const struct wlb_file_waiting *files,
                       struct wlb_evaluation_facts *facts, struct wlb_error *error)
{
	double began_s = wlb_now_s(), loss_sum = 0.0;
	*facts = (struct wlb_evaluation_facts){0};
	if (wlb_loader_rewind(e->loader, error) < 0)
		return wlb_fail_in(error, "evaluation");
	for (int64_t i = 0; i < e->batches; i++)
		if (evaluate_batch(e, pipeline, files, &loss_sum, &facts->tokens, error) < 0)
			return wlb_fail_in(error, "evaluation");
	facts->loss = loss_sum / (double)facts->tokens;
	facts->duration_s = wlb_now_s() - began_s;
	return 0;
}
