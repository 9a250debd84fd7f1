#include "worker/load/options.h"

static const int64_t most_seq_length = (int64_t)1
                                       << 30; /* libwlb's packer has the same limit, and that of the next line */
static const int64_t most_windows = (int64_t)1 << 20;
/* The limit of wlb_dynamic_cp. */
static const int64_t most_places = (int64_t)1 << 20;

void wlb_loader_packer_options(const struct wlb_loader_options *options, struct wlb_packer_options *packer)
{
	wlb_packer_options_init(packer, options->seq_length, (int32_t)options->global_batch_size);
	packer->strategy = options->packing;
}

static int is_dynamic(const struct wlb_loader_options *options)
{
	return options->packing == WLB_STRATEGY_DYNAMIC;
}

static int has_equal_lengths(const struct wlb_loader_options *options)
{
	return options->packing == WLB_STRATEGY_PLAIN || options->packing == WLB_STRATEGY_FIXED;
}

double wlb_loader_length_ratio(const struct wlb_loader_options *options)
{
	struct wlb_packer_options packer;
	wlb_loader_packer_options(options, &packer);
	return has_equal_lengths(options) ? 1.0 : packer.max_length_ratio;
}

int64_t wlb_loader_packed_tokens(const struct wlb_loader_options *options)
{
	return (int64_t)((double)options->seq_length * wlb_loader_length_ratio(options));
}

int32_t wlb_loader_ranks(const struct wlb_loader_options *options)
{
	return options->layout.cp * (is_dynamic(options) ? options->layout.dp : 1);
}

int32_t wlb_loader_rank(const struct wlb_loader_options *options)
{
	return options->coords.cp + (is_dynamic(options) ? options->coords.dp * options->layout.cp : 0);
}

int64_t wlb_loader_bins(const struct wlb_loader_options *options)
{
	return (int64_t)options->micro_batches * options->layout.dp;
}

static int64_t divide_up(int64_t value, int64_t by)
{
	return (value + by - 1) / by;
}

/*
 * A step comes as `windows` packed micro-batches of at most P tokens, made of spans of at most seq_length.
 *
 * max_tokens >= P: max_tokens / P of them go into one as they are.
 *
 * seq_length <= max_tokens < P, where P is 5/4 seq_length: two for each are enough, whenever the longest spans are
 * assigned first. Let seq_length be 1, and say that a span of t does not fit. Then every micro-batch holds more than
 * 1 - t, in spans of at least t.
 *  - t <= 3/8: all together hold more than 2 x 5/8 x windows, which is more than was packed.
 *  - t > 1/2: of such spans two go into a packed one at the most, so that one micro-batch is still empty.
 *  - else: call spans above 1 - t long, and let long spans weigh 1/2 and short spans 1/3. A packed micro-batch holds
 * two long spans, or a long and a short one, or three short spans: it weighs at most 1. A full micro-batch holds one
 * long span, or two spans: it weighs at least 1/2. The full micro-batches together already weigh the most that the
 * packed ones can, and the span is in addition to them.
 */
static int64_t bins_min(const struct wlb_loader_options *options, int64_t windows)
{
	if (is_dynamic(options))
		return options->layout.dp * wlb_dynamic_cp_micro_batches_min(options->layout.dp, options->max_tokens,
		                                                             options->seq_length, windows);
	int64_t packed = wlb_loader_packed_tokens(options);
	if (options->max_tokens < packed)
		return 2 * windows;
	return divide_up(windows, options->max_tokens / packed);
}

int64_t wlb_loader_bins_min(const struct wlb_loader_options *options)
{
	return bins_min(options, options->global_batch_size);
}

int64_t wlb_loader_step_bins(const struct wlb_loader_options *options, int64_t windows)
{
	int64_t dp = options->layout.dp, least = divide_up(bins_min(options, windows), dp);
	int64_t share = divide_up(options->micro_batches * windows, options->global_batch_size);
	return (share > least ? share : least) * dp;
}

static int check_batch(const struct wlb_loader_options *o, struct wlb_error *error)
{
	if (o->seq_length < 1 || o->seq_length > most_seq_length || o->global_batch_size < 1 ||
	    o->global_batch_size > most_windows || o->seq_length * o->global_batch_size > INT32_MAX)
		return wlb_fail(error,
		                "seq_length %lld, global_batch_size %lld: they must be at least 1, at most %lld and "
		                "%lld, and their product below 2^31",
		                (long long)o->seq_length, (long long)o->global_batch_size, (long long)most_seq_length,
		                (long long)most_windows);
	if (o->layout.tp < 1 || o->layout.cp < 1 || o->layout.pp < 1 || o->layout.dp < 1)
		return wlb_fail(error, "layout tp=%d,cp=%d,pp=%d,dp=%d: each must be at least 1", o->layout.tp,
		                o->layout.cp, o->layout.pp, o->layout.dp);
	return 0;
}

static int check_max_tokens(const struct wlb_loader_options *o, struct wlb_error *error)
{
	if (o->max_tokens < o->seq_length)
		return wlb_fail(error,
		                "a micro-batch of at most %lld tokens cannot hold a window of seq_length %lld: raise "
		                "the one or lower the other",
		                (long long)o->max_tokens, (long long)o->seq_length);
	if (o->max_tokens > most_seq_length || wlb_loader_ranks(o) * wlb_loader_max_rows(o) > INT32_MAX)
		return wlb_fail(
			error,
			"a micro-batch of up to %lld tokens on %d x %d ranks (cp x tp): keys and values must be "
			"below 2^31 rows, take smaller micro-batches",
			(long long)o->max_tokens, o->layout.cp, o->layout.tp);
	return 0;
}

/* Returns the limit of a micro-batch for so many windows where none is given. With dynamic packing it is one with which
 * no step needs more micro-batches than its windows do: all replicas together have space for one window more. */
static int64_t usual_max_tokens(const struct wlb_loader_options *o, int64_t windows)
{
	int64_t packed = windows * wlb_loader_packed_tokens(o);
	int64_t least = is_dynamic(o) ? wlb_dynamic_cp_max_tokens(o->layout.dp, o->seq_length, windows) : 0;
	return packed < least ? least : packed;
}

/* Returns the number of micro-batches of a replica: Megatron-LM's, or more where the step would not fit. */
static int64_t choose_micro_batches(const struct wlb_loader_options *o, int64_t windows_per_micro_batch,
                                    int32_t interleave)
{
	int64_t dp = o->layout.dp, pp = o->layout.pp;
	int64_t count = divide_up(divide_up(o->global_batch_size, windows_per_micro_batch), dp);
	int64_t least = divide_up(wlb_loader_bins_min(o), dp);
	count = count > least ? count : least;
	return interleave > 1 ? divide_up(count, pp) * pp : count;
}

/* Returns the most tokens that any micro-batch can have, also where max_tokens is larger. */
static int64_t most_tokens(const struct wlb_loader_options *o)
{
	int64_t packed = wlb_loader_packed_tokens(o), windows = o->global_batch_size;
	if (is_dynamic(o))
		return o->seq_length * windows;
	return packed * (has_equal_lengths(o) ? divide_up(windows, wlb_loader_bins(o)) : windows);
}

int wlb_loader_micro_batches(int64_t seq_length, int64_t global_batch_size, int64_t windows_per_micro_batch,
                             int64_t max_tokens, int32_t interleave, struct wlb_loader_options *options,
                             struct wlb_error *error)
{
	struct wlb_loader_options o = *options;
	o.seq_length = seq_length;
	o.global_batch_size = global_batch_size;
	if (check_batch(&o, error) < 0)
		return -1;
	if (windows_per_micro_batch < 1 || windows_per_micro_batch > global_batch_size)
		return wlb_fail(error, "micro_batch_size is %lld: it must be between 1 and global_batch_size %lld",
		                (long long)windows_per_micro_batch, (long long)global_batch_size);
	o.max_tokens = max_tokens == 0 ? usual_max_tokens(&o, windows_per_micro_batch) : max_tokens;
	if (o.max_tokens < seq_length)
		return check_max_tokens(&o, error);
	int64_t count = choose_micro_batches(&o, windows_per_micro_batch, interleave);
	if (count * o.layout.dp > INT32_MAX)
		return wlb_fail(error, "%lld micro-batches on %d replicas: all together must be below 2^31",
		                (long long)count, o.layout.dp);
	o.micro_batches = (int32_t)count;
	int64_t most = most_tokens(&o);
	o.max_tokens = o.max_tokens < most ? o.max_tokens : most;
	if (check_max_tokens(&o, error) < 0)
		return -1;
	*options = o;
	return 0;
}

int64_t wlb_loader_rank_tokens(const struct wlb_loader_options *options)
{
	/* Ranks differ by at most one token (wlb_shard). */
	return divide_up(options->max_tokens, options->layout.cp);
}

int64_t wlb_loader_max_rows(const struct wlb_loader_options *options)
{
	return divide_up(wlb_loader_rank_tokens(options), options->layout.tp) * options->layout.tp;
}

int32_t wlb_loader_key_ranks(const struct wlb_loader_options *o)
{
	if (!is_dynamic(o))
		return o->layout.cp;
	return wlb_dynamic_cp_key_ranks(&o->layout, wlb_loader_rank_tokens(o), o->micro_batches, o->seq_length,
	                                o->global_batch_size);
}

int64_t wlb_loader_max_keys(const struct wlb_loader_options *options)
{
	if (!is_dynamic(options))
		return options->max_tokens;
	return wlb_loader_key_ranks(options) * wlb_loader_rank_tokens(options);
}

int32_t wlb_loader_loaded_batches(const struct wlb_loader_options *options)
{
	return options->micro_batches + (options->check_interval > 0);
}

static int check_places(const struct wlb_loader_options *o, struct wlb_error *error)
{
	int32_t ranks = wlb_loader_ranks(o);
	if (is_dynamic(o) && (int64_t)ranks * o->micro_batches > most_places)
		return wlb_fail(
			error,
			"dynamic packing in %d micro-batches on %d ranks (cp x dp): their product must be at most "
			"%lld, take larger micro-batches",
			o->micro_batches, ranks, (long long)most_places);
	return 0;
}

int wlb_loader_check(const struct wlb_loader_options *o, struct wlb_error *error)
{
	if (check_batch(o, error) < 0 || check_max_tokens(o, error) < 0)
		return -1;
	if (!(o->storage_timeout_s > 0.0))
		return wlb_fail(error, "storage_timeout_s is %g: it must be above 0", o->storage_timeout_s);
	if (o->micro_batches < 1 || wlb_loader_bins(o) > INT32_MAX || wlb_loader_bins(o) < wlb_loader_bins_min(o))
		return wlb_fail(error,
		                "%d micro-batches of at most %lld tokens on %d replicas: %lld windows of seq_length "
		                "%lld need %lld together",
		                o->micro_batches, (long long)o->max_tokens, o->layout.dp,
		                (long long)o->global_batch_size, (long long)o->seq_length,
		                (long long)wlb_loader_bins_min(o));
	return check_places(o, error);
}
