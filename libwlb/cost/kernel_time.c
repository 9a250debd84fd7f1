/*
 * Computes the seconds of kernels from tiles and a speed. The results are the same bits on every machine: each rank
 * predicts by itself and all must make the same choice. So no logarithm of a mathematical library is used, since those
 * differ between processors.
 */
#include "libwlb/cost/interpolate.h"
#include "libwlb/wlb.h"

#include <math.h>

enum { DEFAULT_TILE = 128, TILE_MAX = 65536 };

void wlb_kernel_time_init(struct wlb_kernel_time *time, const struct wlb_model *model, int32_t tp,
                          double attention_flops_per_s, double gemm_flops_per_s)
{
	double q = (double)(model->num_attention_heads * wlb_model_head_width(model)) / tp;
	*time = (struct wlb_kernel_time){
		.q_tile = DEFAULT_TILE,
		.k_tile = DEFAULT_TILE,
		.gemm_tile = DEFAULT_TILE,
		.attention_pair_s = 4.0 * q / attention_flops_per_s,
		.gemm_token_s = 2.0 * wlb_model_layer_active_parameters(model) / tp / gemm_flops_per_s,
		.window = model->sliding_window,
		.window_share = wlb_model_window_share(model),
	};
}

static int check_tile(const char *name, int32_t tile, struct wlb_error *error)
{
	if (tile >= 1 && tile <= TILE_MAX)
		return 0;
	return wlb_fail(error, "%s is %d: it must be between 1 and %d tokens", name, tile, TILE_MAX);
}

static int check_seconds(const char *name, double seconds, int zero_allowed, struct wlb_error *error)
{
	if (isfinite(seconds) && (seconds > 0.0 || (zero_allowed && seconds == 0.0)))
		return 0;
	return wlb_fail(error, "%s is %g s: it must be finite and %s", name, seconds,
	                zero_allowed ? "not negative" : "above 0");
}

/* Checks that the lengths of a curve are ascending and from 1 to 2^30 tokens. */
static int check_lengths(const char *name, const double *tokens, size_t count, struct wlb_error *error)
{
	for (size_t i = 0; i < count; i++)
		if (!(tokens[i] >= 1.0 && tokens[i] <= 0x1p30) || (i > 0 && tokens[i] <= tokens[i - 1]))
			return wlb_fail(error, "%s of point %zu is %g: it must be 1 to 2^30 and above the one before",
			                name, i, tokens[i]);
	return 0;
}

static int check_attention(const struct wlb_attention_curve *curve, struct wlb_error *error)
{
	if (curve->k_count == 0)
		return wlb_fail(error, "the attention curve has no key lengths: it needs at least one");
	if (check_lengths("q_tokens", curve->q_tokens, curve->q_count, error) < 0 ||
	    check_lengths("k_tokens", curve->k_tokens, curve->k_count, error) < 0)
		return -1;
	double longest_q = curve->q_tokens[curve->q_count - 1], longest_k = curve->k_tokens[curve->k_count - 1];
	if (longest_k < longest_q)
		return wlb_fail(error,
		                "the longest keys of the attention curve are %g, its longest queries %g: keys "
		                "must be no shorter",
		                longest_k, longest_q);
	for (size_t i = 0; i < curve->q_count; i++)
		for (size_t j = 0; j < curve->k_count; j++) {
			if (curve->k_tokens[j] < curve->q_tokens[i])
				continue;
			if (check_seconds("seconds", curve->seconds[i * curve->k_count + j], 0, error) < 0)
				return wlb_fail_in(error, "attention curve, q_tokens %g, k_tokens %g",
				                   curve->q_tokens[i], curve->k_tokens[j]);
		}
	return 0;
}

static int check_gemm(const struct wlb_gemm_curve *curve, struct wlb_error *error)
{
	if (check_lengths("tokens", curve->tokens, curve->count, error) < 0)
		return -1;
	for (size_t i = 0; i < curve->count; i++)
		if (check_seconds("seconds", curve->seconds[i], 0, error) < 0)
			return wlb_fail_in(error, "matrix product curve, tokens %g", curve->tokens[i]);
	return 0;
}

int wlb_kernel_time_check(const struct wlb_kernel_time *time, struct wlb_error *error)
{
	if (check_tile("q_tile", time->q_tile, error) < 0 || check_tile("k_tile", time->k_tile, error) < 0 ||
	    check_tile("gemm_tile", time->gemm_tile, error) < 0 ||
	    check_seconds("segment_s", time->segment_s, 1, error) < 0)
		return -1;
	if (time->window < 0 || !(time->window_share >= 0.0 && time->window_share <= 1.0))
		return wlb_fail(error,
		                "window is %lld, window_share %g: the first must not be negative, the second be 0 to 1",
		                (long long)time->window, time->window_share);
	if (time->attention.q_count > 0 ? check_attention(&time->attention, error) < 0
	                                : check_seconds("attention_pair_s", time->attention_pair_s, 0, error) < 0)
		return -1;
	return time->gemm.count > 0 ? check_gemm(&time->gemm, error)
	                            : check_seconds("gemm_token_s", time->gemm_token_s, 0, error);
}

/* Returns the sum of floor((step * i + from) / by) for i from 0 to count - 1, with the divisions of Euclid's
 * algorithm. */
static int64_t floor_sum(int64_t count, int64_t by, int64_t step, int64_t from)
{
	int64_t sum = 0;
	while (count > 0) {
		sum += count * (count - 1) / 2 * (step / by) + count * (from / by);
		int64_t top = count * (step % by) + from % by;
		count = top / by;
		from = top % by;
		step %= by;
		int64_t swapped = by;
		by = step;
		step = swapped;
	}
	return sum;
}

/* Returns the number of pairs of a query and a key in all tiles that a causal kernel computes. It computes each tile of
 * queries with every tile of keys up to the last that the last of these queries sees. */
static double tiled_pairs(const struct wlb_kernel_time *time, int64_t q_tokens, int64_t k_tokens)
{
	int64_t q_tile = time->q_tile, k_tile = time->k_tile;
	int64_t full = (q_tokens - 1) / q_tile; /* tiles of queries before the last */
	int64_t first_sees = k_tokens - q_tokens + q_tile;
	int64_t tiles = floor_sum(full, k_tile, q_tile, first_sees + k_tile - 1) + (k_tokens + k_tile - 1) / k_tile;
	return (double)tiles * (double)(q_tile * k_tile);
}

/* Returns the number of those pairs that a kernel passes over in a layer with a window. It passes over each tile of
 * keys before the first key that the first of a tile's queries sees. */
static double skipped_pairs(const struct wlb_kernel_time *time, int64_t q_tokens, int64_t k_tokens)
{
	int64_t q_tile = time->q_tile, k_tile = time->k_tile, tiles = (q_tokens + q_tile - 1) / q_tile;
	int64_t first_key = k_tokens - q_tokens + 1 - time->window; /* of the first tile of queries, where positive */
	int64_t before = first_key < 0 ? (q_tile - 1 - first_key) / q_tile : 0; /* tiles whose first key is not */
	if (before >= tiles)
		return 0.0;
	int64_t skipped = floor_sum(tiles - before, k_tile, q_tile, first_key + before * q_tile);
	return (double)skipped * (double)(q_tile * k_tile);
}

/* Approximates the logarithm to base 2: exact at powers of two and linear between them. */
static double logarithm(double x)
{
	int exponent;
	double mantissa = frexp(x, &exponent);
	return (double)exponent + 2.0 * mantissa;
}

static double share_of(double low, double high, double length)
{
	double from = logarithm(low), to = logarithm(high);
	return (logarithm(length) - from) / (to - from);
}

static struct wlb_position find_position(const double *lengths, size_t count, double length)
{
	return wlb_position_find(lengths, count, length, share_of);
}

/* Returns the seconds that a tiled pair took at a point of the curve. Where it has fewer keys than queries, returns
 * those of the next point that has as many. */
static double pair_seconds_at(const struct wlb_kernel_time *time, size_t i, size_t j)
{
	const struct wlb_attention_curve *curve = &time->attention;
	while (curve->k_tokens[j] < curve->q_tokens[i])
		j++;
	return curve->seconds[i * curve->k_count + j] /
	       tiled_pairs(time, (int64_t)curve->q_tokens[i], (int64_t)curve->k_tokens[j]);
}

/* Returns the same at a query length of the curve and any key length. */
static double pair_seconds_on_row(const struct wlb_kernel_time *time, size_t i, struct wlb_position k)
{
	double low = pair_seconds_at(time, i, k.low);
	return k.share > 0.0 ? wlb_interpolate(low, pair_seconds_at(time, i, k.low + 1), k.share) : low;
}

static double pair_seconds(const struct wlb_kernel_time *time, int64_t q_tokens, int64_t k_tokens)
{
	const struct wlb_attention_curve *curve = &time->attention;
	if (curve->q_count == 0)
		return time->attention_pair_s;
	struct wlb_position q = find_position(curve->q_tokens, curve->q_count, (double)q_tokens);
	struct wlb_position k = find_position(curve->k_tokens, curve->k_count, (double)k_tokens);
	double low = pair_seconds_on_row(time, q.low, k);
	return q.share > 0.0 ? wlb_interpolate(low, pair_seconds_on_row(time, q.low + 1, k), q.share) : low;
}

double wlb_attention_seconds(const struct wlb_kernel_time *time, int64_t q_tokens, int64_t k_tokens)
{
	double pairs = tiled_pairs(time, q_tokens, k_tokens), share = time->window_share;
	double seconds = pairs * pair_seconds(time, q_tokens, k_tokens);
	if (time->window == 0 || k_tokens <= time->window)
		return time->segment_s + seconds;
	int64_t short_q = q_tokens < time->window ? q_tokens : time->window;
	double in_window = pairs - skipped_pairs(time, q_tokens, k_tokens);
	return time->segment_s + (1.0 - share) * seconds +
	       share * in_window * pair_seconds(time, short_q, time->window);
}

static double tiled_tokens(const struct wlb_kernel_time *time, int64_t tokens)
{
	return (double)((tokens + time->gemm_tile - 1) / time->gemm_tile * time->gemm_tile);
}

static double token_seconds_at(const struct wlb_kernel_time *time, size_t i)
{
	return time->gemm.seconds[i] / tiled_tokens(time, (int64_t)time->gemm.tokens[i]);
}

double wlb_gemm_seconds(const struct wlb_kernel_time *time, int64_t tokens)
{
	const struct wlb_gemm_curve *curve = &time->gemm;
	if (curve->count == 0)
		return tiled_tokens(time, tokens) * time->gemm_token_s;
	struct wlb_position position = find_position(curve->tokens, curve->count, (double)tokens);
	double seconds = token_seconds_at(time, position.low);
	if (position.share > 0.0)
		seconds = wlb_interpolate(seconds, token_seconds_at(time, position.low + 1), position.share);
	return tiled_tokens(time, tokens) * seconds;
}
