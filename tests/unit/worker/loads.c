#include "tests/unit/worker/loads.h"

#include <stdlib.h>

#include "tests/unit/data/index_file.h"

enum { INT32_CODE = 4 };

void loads_open(struct loads_dataset *d, void **state, const int32_t *lengths, int count)
{
	static struct index_file f; /* too large for a stack under a sanitizer */
	struct wlb_error error;
	*d = (struct loads_dataset){.model = {.hidden_size = 64,
	                                      .intermediate_size = 128,
	                                      .num_hidden_layers = 2,
	                                      .num_attention_heads = 4,
	                                      .num_key_value_heads = 4,
	                                      .head_dim = 16,
	                                      .max_position_embeddings = 1 << 20,
	                                      .rope_theta = 1e4,
	                                      .rms_norm_eps = 1e-5}};
	for (int i = 0; i < count; i++)
		d->tokens += lengths[i];
	d->model.vocab_size = d->tokens;
	index_file_init(&f, INT32_CODE, 4, lengths, count);
	index_file_write(&f, state);
	index_file_write_tokens(&f, INT32_MAX, state);
	if (wlb_dataset_open(fixture_path(state, "x"), &d->dataset, &error) < 0)
		fail_msg("%s", error.message);
	d->device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	if (d->device == NULL)
		fail_msg("%s", error.message);
}

void loads_open_skewed(struct loads_dataset *d, void **state, int count, int64_t divisor)
{
	int32_t *lengths = calloc((size_t)count, sizeof(*lengths));
	struct wlb_lengths stream;
	wlb_lengths_init(&stream, 5, 1.0);
	assert_non_null(lengths);
	for (int i = 0; i < count; i++)
		lengths[i] = (int32_t)(wlb_lengths_next(&stream) / divisor);
	loads_open(d, state, lengths, count);
	free(lengths);
}

void loads_close(struct loads_dataset *d)
{
	wlb_dataset_close(d->dataset);
	wlb_device_close(d->device);
}

struct wlb_loader_options loads_options(enum wlb_strategy packing, enum wlb_sharding sharding, int64_t seq_length,
                                        int64_t windows, int64_t micro_batch_size, int64_t max_tokens,
                                        struct wlb_layout layout)
{
	struct wlb_error error;
	struct wlb_loader_options o = {
		.seed = 11, .packing = packing, .sharding = sharding, .layout = layout, .storage_timeout_s = 60.0};
	if (wlb_loader_micro_batches(seq_length, windows, micro_batch_size, max_tokens, 1, &o, &error) < 0)
		fail_msg("%s", error.message);
	return o;
}

struct wlb_loader *loads_new(const struct loads_dataset *d, const struct wlb_loader_options *options)
{
	struct wlb_error error;
	struct wlb_loader *loader = wlb_loader_new(d->dataset, &d->model, options, d->device, &error);
	if (loader == NULL)
		fail_msg("%s", error.message);
	return loader;
}

const struct wlb_loaded_step *loads_next(struct wlb_loader *loader)
{
	const struct wlb_loaded_step *step = NULL;
	struct wlb_error error;
	double waited_s = -1.0;
	if (wlb_loader_next(loader, &step, &waited_s, &error) < 0)
		fail_msg("%s", error.message);
	assert_true(waited_s >= 0.0);
	return step;
}

static void *copy(struct wlb_device *device, const void *from, int64_t count, size_t size)
{
	void *to = malloc((size_t)count * size + 1);
	assert_non_null(to);
	if (count > 0)
		device->ops->to_host(device, to, from, (size_t)count * size);
	return to;
}

int loads_group_ranks(int group, const struct wlb_layout *layout)
{
	if (group == 0)
		return layout->cp;
	int ranks = layout->cp * layout->dp;
	for (int i = ranks != layout->cp; i < group; i += ranks != layout->cp) {
		int power = 1;
		while (2 * power < ranks)
			power *= 2;
		ranks = power;
	}
	return ranks;
}

int64_t loads_exchanged(const struct wlb_micro_batch *batch, const struct wlb_layout *layout)
{
	int64_t rows = 0;
	for (int e = 0; e < batch->exchange_count; e++)
		rows += loads_group_ranks(batch->exchanges[e].group, layout) * batch->exchanges[e].rows;
	return rows;
}

struct loads_batch loads_fetch(struct wlb_device *device, const struct wlb_micro_batch *batch,
                               const struct wlb_layout *layout)
{
	int64_t maps = batch->exchange_count > 0;
	struct loads_batch b = {.about = *batch};
	if (batch->tokens == 0)
		return b;
	assert_int_equal(batch->from_ranks != NULL, maps);
	assert_int_equal(batch->to_ranks != NULL, maps);
	b.ids = copy(device, batch->ids, batch->rows, sizeof(int32_t));
	b.targets = copy(device, batch->targets, batch->rows, sizeof(int32_t));
	b.positions = copy(device, batch->positions, batch->rows, sizeof(int32_t));
	b.from_ranks = copy(device, batch->from_ranks, maps * batch->tokens, sizeof(int32_t));
	b.to_ranks = copy(device, batch->to_ranks, loads_exchanged(batch, layout), sizeof(int32_t));
	b.segments = copy(device, batch->segments.segments, batch->segments.count, sizeof(struct wlb_segment));
	return b;
}

void loads_batch_free(struct loads_batch *b)
{
	free(b->ids);
	free(b->targets);
	free(b->positions);
	free(b->from_ranks);
	free(b->to_ranks);
	free(b->segments);
	*b = (struct loads_batch){0};
}

void loads_group_open(struct loads_group *g, const struct loads_dataset *d, const struct wlb_loader_options *options)
{
	int cp = options->layout.cp;
	*g = (struct loads_group){.data = d, .options = *options, .ranks = cp * options->layout.dp};
	g->loaders = calloc((size_t)g->ranks, sizeof(struct wlb_loader *));
	g->steps = calloc((size_t)g->ranks, sizeof(struct wlb_loaded_step *));
	g->batches = calloc((size_t)g->ranks * (size_t)options->micro_batches, sizeof(*g->batches));
	assert_true(g->loaders != NULL && g->steps != NULL && g->batches != NULL);
	for (int r = 0; r < g->ranks; r++) {
		struct wlb_loader_options own = *options;
		own.coords = (struct wlb_coordinates){.cp = r % cp, .dp = r / cp};
		g->loaders[r] = loads_new(d, &own);
	}
}

static void drop_batches(struct loads_group *g)
{
	for (int i = 0; i < g->ranks * g->options.micro_batches; i++)
		loads_batch_free(&g->batches[i]);
}

void loads_group_close(struct loads_group *g)
{
	drop_batches(g);
	for (int r = 0; r < g->ranks; r++)
		wlb_loader_free(g->loaders[r]);
	free(g->loaders);
	free(g->steps);
	free(g->batches);
}

void loads_group_next(struct loads_group *g)
{
	int count = g->options.micro_batches;
	drop_batches(g);
	for (int r = 0; r < g->ranks; r++) {
		g->steps[r] = loads_next(g->loaders[r]);
		assert_int_equal(g->steps[r]->micro_batches, count);
		for (int m = 0; m < count; m++)
			g->batches[r * count + m] =
				loads_fetch(g->data->device, &g->steps[r]->list[m], &g->options.layout);
	}
}

const struct loads_batch *loads_group_batch(const struct loads_group *g, int dp, int cp, int micro_batch)
{
	return &g->batches[(dp * g->options.layout.cp + cp) * g->options.micro_batches + micro_batch];
}

void loads_stream_open(struct loads_stream *s, const struct loads_dataset *d, const struct wlb_loader_options *options)
{
	struct wlb_packer_options packing;
	struct wlb_error error;
	wlb_packer_options_init(&packing, options->seq_length, (int32_t)options->global_batch_size);
	packing.strategy = options->packing;
	wlb_document_time_init(&s->time, &d->model, 1);
	if (options->packing == WLB_STRATEGY_BALANCED) {
		packing.work = wlb_document_s;
		packing.work_context = &s->time;
	}
	s->schedule =
		wlb_schedule_new(d->dataset, options->seq_length, options->global_batch_size, options->seed, &error);
	s->packer = wlb_packer_new(&d->model, &packing, &error);
	if (s->schedule == NULL || s->packer == NULL)
		fail_msg("%s", error.message);
}

void loads_stream_close(struct loads_stream *s)
{
	wlb_schedule_free(s->schedule);
	wlb_packer_free(s->packer);
}

const struct wlb_step *loads_stream_next(struct loads_stream *s)
{
	const struct wlb_span *spans;
	struct wlb_error error;
	int count = wlb_schedule_next(s->schedule, &spans, &error);
	assert_true(count > 0);
	const struct wlb_step *step = wlb_packer_next(s->packer, spans, (size_t)count, &error);
	assert_non_null(step);
	return step->tokens > 0 ? step : wlb_packer_next(s->packer, NULL, 0, &error);
}

int64_t loads_first_id(const struct loads_dataset *d, const struct wlb_span *span)
{
	int64_t id = span->start;
	for (int64_t i = 0; i < span->document; i++)
		id += wlb_dataset_length(d->dataset, i);
	return id;
}
