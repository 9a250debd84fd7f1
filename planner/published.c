#include "planner/published.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/data_file.h"

enum { MOST_STEPS = 10000, FEWEST_NEAR = 4, FEWEST_SOURCES = 2 };

static const double window_factor = 2.0, gpus_factor = 64.0, level = 0.9;

/* ["H100", "nemo", window in tokens, GPUs, predicted over published time] */
static int read_step(json_t *value, struct wlb_published_step *step, struct wlb_error *error)
{
	const char *machine, *trainer;
	if (json_unpack_ex(value, NULL, JSON_STRICT, "[s, s, F, F, F]", &machine, &trainer, &step->window_tokens,
	                   &step->gpus, &step->ratio) < 0)
		return wlb_fail(error, "it must be a machine, a trainer, a window in tokens, GPUs and a ratio");
	if (strlen(machine) >= sizeof(step->machine) || strlen(trainer) >= sizeof(step->trainer))
		return wlb_fail(error, "a name has more than %zu bytes", sizeof(step->trainer) - 1);
	if (!(step->window_tokens >= 1.0 && step->window_tokens <= 0x1p30 && step->gpus >= 1.0 &&
	      step->gpus <= 0x1p24 && step->ratio >= 0.01 && step->ratio <= 100.0))
		return wlb_fail(error, "window, GPUs and ratio must be 1 to 2^30, 1 to 2^24 and 0.01 to 100");
	strcpy(step->machine, machine);
	strcpy(step->trainer, trainer);
	return 0;
}

static const char *const lists[WLB_PUBLISHED_LISTS] = {"steps", "fp8_steps", "expert_steps"};

enum wlb_published_list wlb_published_list_of(const struct wlb_model *model, enum wlb_fp8 fp8)
{
	if (model->num_experts > 0)
		return WLB_PUBLISHED_EXPERT_STEPS;
	return fp8 == WLB_FP8_NONE ? WLB_PUBLISHED_STEPS : WLB_PUBLISHED_FP8_STEPS;
}

static int read_steps(const json_t *steps, const struct wlb_published_step *of, struct wlb_published *published,
                      struct wlb_error *error)
{
	json_t *value;
	size_t i;
	json_array_foreach(steps, i, value)
	{
		struct wlb_published_step step = *of;
		if (published->count == MOST_STEPS)
			return wlb_fail(error, "more than %d steps", MOST_STEPS);
		if (read_step(value, &step, error) < 0)
			return wlb_fail_in(error, "source %d, %s %zu", of->source, lists[of->list], i);
		published->steps[published->count++] = step;
	}
	return 0;
}

static int read_source(const json_t *source, int32_t number, struct wlb_published *published, struct wlb_error *error)
{
	const json_t *constants = json_object_get(source, "sets_constants");
	struct wlb_published_step of = {.source = number, .sets_constants = json_is_true(constants)};
	if (!json_is_boolean(constants))
		return wlb_fail(error, "source %d must have sets_constants, true or false", number);
	for (int list = 0; list < WLB_PUBLISHED_LISTS; list++) {
		const json_t *steps = json_object_get(source, lists[list]);
		of.list = (enum wlb_published_list)list;
		if (!json_is_array(steps) && (steps != NULL || list == WLB_PUBLISHED_STEPS))
			return wlb_fail(error, "source %d: %s must be a list", number, lists[list]);
		if (read_steps(steps, &of, published, error) < 0)
			return -1;
	}
	return 0;
}

int wlb_published_parse(const char *text, size_t bytes, struct wlb_published *published, struct wlb_error *error)
{
	json_error_t why;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why), *sources, *source;
	size_t i;
	if (root == NULL)
		return wlb_fail(error, "line %d: not JSON: %s", why.line, why.text);
	sources = json_object_get(root, "sources");
	published->steps = calloc(MOST_STEPS, sizeof(*published->steps));
	int rc = published->steps == NULL ? wlb_fail(error, "out of memory for %d steps", MOST_STEPS)
	         : json_is_array(sources) ? 0
	                                  : wlb_fail(error, "it must be an object with a list of sources");
	json_array_foreach(sources, i, source) if (rc == 0) rc = read_source(source, (int32_t)i, published, error);
	json_decref(root);
	return rc;
}

static int parse(const char *text, size_t bytes, void *published, struct wlb_error *error)
{
	return wlb_published_parse(text, bytes, published, error);
}

int wlb_published_read(struct wlb_published *published, struct wlb_error *error)
{
	static const struct wlb_data_folder folder = {"published", "WLB_PUBLISHED"};
	return wlb_data_file_read(&folder, "steps", parse, published, error);
}

void wlb_published_free(struct wlb_published *published)
{
	free(published->steps);
	*published = (struct wlb_published){0};
}

static int within_factor(double a, double b, double factor)
{
	return a <= factor * b && b <= factor * a;
}

static int is_near(const struct wlb_published_step *step, const struct wlb_published_question *question)
{
	return step->source != question->without && step->list == question->list &&
	       strcasecmp(step->machine, question->machine) == 0 &&
	       within_factor(step->window_tokens, question->window_tokens, window_factor) &&
	       within_factor(step->gpus, question->gpus, gpus_factor);
}

/* A step that is near. The steps of a source are off by alike shares: all of them have a weight of 1 together. */
struct near_step {
	double off; /* |log(ratio)| */
	double weight;
};

static int by_off(const void *a, const void *b)
{
	double x = ((const struct near_step *)a)->off, y = ((const struct near_step *)b)->off;
	return (x > y) - (x < y);
}

/* Which of the steps that are near count. */
struct choice {
	int any_trainer, with_constants;
};

static int counts(const struct wlb_published_step *step, const struct wlb_published_question *question,
                  const struct choice *choice)
{
	return is_near(step, question) && (choice->with_constants || !step->sets_constants) &&
	       (choice->any_trainer || strcasecmp(step->trainer, question->trainer) == 0);
}

static void weigh(struct near_step *steps, int32_t first, int32_t end)
{
	for (int32_t i = first; i < end; i++)
		steps[i].weight = 1.0 / (end - first);
}

/* Collects the steps that count; those of a source follow each other in the file. */
static void collect(const struct wlb_published *published, const struct wlb_published_question *question,
                    const struct choice *choice, struct near_step *steps, struct wlb_published_near *near)
{
	int32_t first = 0, last_source = -1;
	near->kind = WLB_PUBLISHED_CALIBRATED;
	for (size_t i = 0; i < published->count; i++) {
		const struct wlb_published_step *step = &published->steps[i];
		if (!counts(step, question, choice))
			continue;
		if (step->source != last_source) {
			weigh(steps, first, near->steps);
			first = near->steps;
			near->sources++;
		}
		last_source = step->source;
		near->any_trainer |= strcasecmp(step->trainer, question->trainer) != 0;
		if (!step->sets_constants)
			near->kind = WLB_PUBLISHED_PREDICTED;
		steps[near->steps++].off = fabs(log(step->ratio));
	}
	weigh(steps, first, near->steps);
}

static struct wlb_published_near find(const struct wlb_published *published,
                                      const struct wlb_published_question *question, const struct choice *choice)
{
	static const double rounding = 1e-9;
	struct wlb_published_near near = {0};
	struct near_step steps[MOST_STEPS];
	collect(published, question, choice, steps, &near);
	if (near.steps < FEWEST_NEAR || near.sources < FEWEST_SOURCES)
		return (struct wlb_published_near){0};
	qsort(steps, (size_t)near.steps, sizeof(steps[0]), by_off);
	int32_t at = 0;
	for (double weight = steps[0].weight; weight < level * near.sources - rounding; weight += steps[at].weight)
		at++;
	near.lower = exp(-steps[at].off);
	near.upper = exp(steps[at].off);
	return near;
}

struct wlb_published_near wlb_published_near(const struct wlb_published *published,
                                             const struct wlb_published_question *question)
{
	static const struct choice choices[] = {{0, 0}, {1, 0}, {1, 1}};
	struct wlb_published_near near = {0};
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]) && near.kind == WLB_PUBLISHED_UNKNOWN; i++)
		near = find(published, question, &choices[i]);
	return near;
}
