#include "libverdict/delays.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libverdict/error.h"
#include "libverdict/quantile.h"
#include "libverdict/streams.h"

enum { DELAY_STEPS = 16 };
static const double gigabyte = 1e9;

int verdict_delays_init(struct verdict_delays *delays, const struct verdict_world *world, int32_t sets)
{
	size_t memberships = (size_t)world->memberships + 1;
	delays->longer = calloc(memberships, sizeof(*delays->longer));
	delays->steps = calloc(memberships, sizeof(*delays->steps));
	delays->usual = calloc((size_t)sets + 1, sizeof(*delays->usual));
	delays->scratch = calloc(memberships, sizeof(*delays->scratch));
	return delays->longer == NULL || delays->steps == NULL || delays->usual == NULL || delays->scratch == NULL ? -1
	                                                                                                           : 0;
}

void verdict_delays_free(struct verdict_delays *delays)
{
	free(delays->longer);
	free(delays->steps);
	free(delays->usual);
	free(delays->scratch);
}

void verdict_delays_step(struct wlb_verdict_detector *detector)
{
	struct verdict_delays *delays = &detector->delays;
	const struct verdict_shift *test = &detector->link;
	double part = (double)(test->steps < DELAY_STEPS ? test->steps : DELAY_STEPS);
	for (int32_t s = 0; s < test->sets; s++)
		delays->usual[s] += (test->common + test->constant[s] - delays->usual[s]) / part;
	for (int32_t m = 0; m < detector->world.memberships; m++) {
		if (!isfinite(test->rest[m]))
			continue;
		delays->steps[m] += delays->steps[m] < DELAY_STEPS;
		delays->longer[m] += (test->rest[m] - delays->longer[m]) / delays->steps[m];
	}
}

/* A rank, or all ranks of a node. */
struct place {
	const int32_t *ranks;
	int32_t count;
};

static struct place place_of_node(const struct verdict_world *world, int32_t node)
{
	int32_t first = world->on_node.first[node];
	return (struct place){world->on_node.list + first, world->on_node.first[node + 1] - first};
}

static int has(const struct place *place, int32_t rank)
{
	for (int32_t i = 0; i < place->count; i++)
		if (place->ranks[i] == rank)
			return 1;
	return 0;
}

/* How much longer the measured streams that a place sends, or receives, take: [count] in the scratch of the delays. */
struct line {
	int32_t count;
	double usual; /* mean of the logarithms of seconds for a byte that are expected of them */
};

/* `between` is the other end of the streams, NULL: they are of groups on several nodes. */
static struct line collect(const struct wlb_verdict_detector *detector, const struct place *place, int sends,
                           const struct place *between)
{
	const struct verdict_world *world = &detector->world;
	const struct verdict_delays *delays = &detector->delays;
	struct line line = {0};
	for (int32_t i = 0; i < place->count; i++) {
		int32_t r = place->ranks[i];
		for (int32_t k = world->of_rank.first[r]; k < world->of_rank.first[r + 1]; k++) {
			struct verdict_stream stream = verdict_stream_of(world, world->of_rank.list[k]);
			int32_t own = sends ? stream.source : stream.destination;
			int32_t other = sends ? stream.destination : stream.source;
			if (own != r || delays->steps[stream.membership] == 0 ||
			    (between != NULL ? !has(between, other) : !stream.crosses))
				continue;
			double usual = delays->usual[detector->link.set_of[stream.membership]];
			delays->scratch[line.count++] = delays->longer[stream.membership];
			line.usual += (usual - line.usual) / line.count;
		}
	}
	return line;
}

static double median_percent(const struct wlb_verdict_detector *detector, struct line line)
{
	return line.count > 0 ? 100.0 * expm1(verdict_quantile(detector->delays.scratch, line.count, 0.5)) : NAN;
}

static double line_percent(const struct wlb_verdict_detector *detector, const struct place *place, int sends)
{
	return median_percent(detector, collect(detector, place, sends, NULL));
}

double verdict_delays_row_percent(const struct wlb_verdict_detector *detector, int32_t node)
{
	struct place place = place_of_node(&detector->world, node);
	return line_percent(detector, &place, 1);
}

double verdict_delays_column_percent(const struct wlb_verdict_detector *detector, int32_t node)
{
	struct place place = place_of_node(&detector->world, node);
	return line_percent(detector, &place, 0);
}

static void describe(const char *what, int32_t source, int32_t destination, struct wlb_verdict_delay *delay)
{
	int length =
		snprintf(delay->evidence, sizeof(delay->evidence),
	                 "row %s %d (source), column %s %d (destination): a gigabyte takes %.4g s, expected %.4g s, "
	                 "%.0f %% longer, the median of %d streams",
	                 what, source, what, destination, delay->measured_s, delay->expected_s, delay->longer_percent,
	                 delay->streams);
	if (length < 0 || (size_t)length >= sizeof(delay->evidence) || isnan(delay->row_percent) ||
	    isnan(delay->column_percent))
		return;
	snprintf(delay->evidence + length, sizeof(delay->evidence) - (size_t)length,
	         "; between nodes all of the row %.0f %%, all of the column %.0f %%", delay->row_percent,
	         delay->column_percent);
}

static int find_cell(const struct wlb_verdict_detector *detector, const struct place *source,
                     const struct place *destination, struct wlb_verdict_delay *delay)
{
	struct line cell = collect(detector, source, 1, destination);
	if (cell.count == 0)
		return -1;
	double longer_percent = median_percent(detector, cell), expected_s = gigabyte * exp(cell.usual);
	*delay = (struct wlb_verdict_delay){.streams = cell.count,
	                                    .expected_s = expected_s,
	                                    .measured_s = expected_s * (1.0 + longer_percent / 100.0),
	                                    .longer_percent = longer_percent,
	                                    .row_percent = line_percent(detector, source, 1),
	                                    .column_percent = line_percent(detector, destination, 0)};
	return 0;
}

/* Tells the cell of a pair of nodes or ranks, whatever `what` says that they are. */
static int tell(const struct wlb_verdict_detector *detector, const char *what, int32_t source, int32_t destination,
                const struct place places[2], struct wlb_verdict_delay *delay, struct wlb_verdict_error *error)
{
	if (find_cell(detector, &places[0], &places[1], delay) < 0)
		return verdict_fail(error, "no messages from %s %d to %s %d were measured", what, source, what,
		                    destination);
	describe(what, source, destination, delay);
	return 0;
}

int wlb_verdict_delay_of_nodes(const struct wlb_verdict_detector *detector, int32_t source, int32_t destination,
                               struct wlb_verdict_delay *delay, struct wlb_verdict_error *error)
{
	int32_t nodes = detector->world.nodes;
	if (source < 0 || source >= nodes || destination < 0 || destination >= nodes)
		return verdict_fail(error, "delay from node %d to node %d: nodes are 0 to %d", source, destination,
		                    nodes - 1);
	const struct place places[2] = {place_of_node(&detector->world, source),
	                                place_of_node(&detector->world, destination)};
	return tell(detector, "node", source, destination, places, delay, error);
}

int wlb_verdict_delay_of_ranks(const struct wlb_verdict_detector *detector, int32_t source, int32_t destination,
                               struct wlb_verdict_delay *delay, struct wlb_verdict_error *error)
{
	int32_t ranks = detector->world.ranks;
	if (source < 0 || source >= ranks || destination < 0 || destination >= ranks)
		return verdict_fail(error, "delay from rank %d to rank %d: ranks are 0 to %d", source, destination,
		                    ranks - 1);
	const struct place places[2] = {{&source, 1}, {&destination, 1}};
	return tell(detector, "rank", source, destination, places, delay, error);
}
