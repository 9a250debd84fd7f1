#include "planner/cli/shard/report.h"

#include <inttypes.h>
#include <math.h>

#include "common/output/table.h"
#include "common/output/terminal.h"
#include "planner/cli/chart.h"

enum { BARS_MAX = 32 };

static int64_t tokens_of(const struct wlb_shards *shards, int32_t rank)
{
	return shards->first_row[rank + 1] - shards->first_row[rank];
}

void wlb_shard_summary_add(struct wlb_shard_summary *summary, const struct wlb_shards *shards,
                           const struct wlb_model *model, const struct wlb_kernel_time *time)
{
	int64_t fullest = 0, emptiest = INT64_MAX;
	double heaviest = 0.0, all = 0.0, slowest_s = 0.0;
	for (int32_t r = 0; r < shards->ranks; r++) {
		int64_t tokens = tokens_of(shards, r);
		double work = wlb_shards_work(shards, r, model);
		fullest = tokens > fullest ? tokens : fullest;
		emptiest = tokens < emptiest ? tokens : emptiest;
		heaviest = fmax(heaviest, work);
		slowest_s = fmax(slowest_s, wlb_shards_seconds(shards, r, time));
		all += work;
	}
	double imbalance = all > 0.0 ? heaviest * shards->ranks / all : 1.0;
	summary->micro_batches++;
	summary->work_imbalance_mean += (imbalance - summary->work_imbalance_mean) / (double)summary->micro_batches;
	summary->work_imbalance_max = fmax(summary->work_imbalance_max, imbalance);
	if (fullest - emptiest > summary->token_spread_max)
		summary->token_spread_max = fullest - emptiest;
	summary->per_document += shards->sharding == WLB_SHARDING_DOCUMENT;
	summary->tokens += shards->tokens;
	summary->shards += (int64_t)shards->first_shard[shards->ranks];
	summary->attention_s += slowest_s;
}

json_t *wlb_shard_json(const struct wlb_shard_summary *s)
{
	return json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "strategy", s->strategy, "ranks",
	                 (int)s->ranks, "micro_batches", (json_int_t)s->micro_batches, "micro_batches_per_document",
	                 (json_int_t)s->per_document, "documents", (json_int_t)s->documents, "tokens",
	                 (json_int_t)s->tokens, "shards", (json_int_t)s->shards, "token_spread_max",
	                 (json_int_t)s->token_spread_max, "work_imbalance_mean", s->work_imbalance_mean,
	                 "work_imbalance_max", s->work_imbalance_max, "attention_s", s->attention_s);
}

int wlb_shard_print(const struct wlb_shard_summary *s)
{
	struct wlb_table table = {.columns = 3, .right = "lrl"};
	char text[32];
	printf("%s over %d ranks: %" PRId64 " micro-batches, %" PRId64 " documents, %" PRId64 " tokens\n\n",
	       s->strategy, s->ranks, s->micro_batches, s->documents, s->tokens);
	snprintf(text, sizeof(text), "%.6f", s->work_imbalance_mean);
	wlb_table_add(&table, (const char *const[]){"work, mean", text, "heaviest rank / mean rank"});
	snprintf(text, sizeof(text), "%.6f", s->work_imbalance_max);
	wlb_table_add(&table, (const char *const[]){"work, worst", text, "of all micro-batches"});
	snprintf(text, sizeof(text), "%" PRId64, s->token_spread_max);
	wlb_table_add(&table, (const char *const[]){"tokens", text, "fullest rank - emptiest, at most"});
	snprintf(text, sizeof(text), "%" PRId64, s->shards);
	wlb_table_add(&table, (const char *const[]){"shards", text, "segments of the attention kernel, all ranks"});
	snprintf(text, sizeof(text), "%.3f", s->attention_s * 1e3);
	wlb_table_add(&table, (const char *const[]){"attention", text, "ms a layer forward, the slowest ranks' sum"});
	snprintf(text, sizeof(text), "%" PRId64, s->per_document);
	wlb_table_add(&table, (const char *const[]){"per document", text, "micro-batches; the others per sequence"});
	return wlb_table_print(&table, "  ", stdout);
}

void wlb_shard_print_ranks(const struct wlb_shards *shards, const struct wlb_model *model)
{
	struct wlb_bar bars[BARS_MAX];
	int shown = shards->ranks < BARS_MAX ? shards->ranks : BARS_MAX;
	double sum = 0.0;
	for (int32_t r = 0; r < shards->ranks; r++)
		sum += wlb_shards_work(shards, r, model);
	for (int32_t r = 0; r < shown; r++) {
		double work = wlb_shards_work(shards, r, model);
		snprintf(bars[r].label, sizeof(bars[r].label), "%3d", r);
		snprintf(bars[r].note, sizeof(bars[r].note), "%.4f  %9" PRId64,
		         sum > 0.0 ? work * shards->ranks / sum : 0.0, tokens_of(shards, r));
		bars[r].value = work;
	}
	puts("\nRanks of the last micro-batch: work (share of the mean), tokens");
	wlb_bars(stdout, bars, shown, wlb_terminal_columns(), wlb_terminal_unicode());
	if (shown < shards->ranks)
		printf("  ... and %d more\n", shards->ranks - shown);
}

void wlb_shard_dump_header(FILE *out)
{
	fputs("micro_batch rank document_index start length key_start keys\n", out);
}

void wlb_shard_dump(FILE *out, int64_t micro_batch, const struct wlb_shards *shards, const struct wlb_span *documents)
{
	for (int32_t r = 0; r < shards->ranks; r++)
		for (size_t i = shards->first_shard[r]; i < shards->first_shard[r + 1]; i++) {
			const struct wlb_shard *shard = &shards->shards[i];
			const struct wlb_span *document = &documents[shard->document];
			fprintf(out, "%" PRId64 " %d %" PRId64 " %" PRId64 " %d %d %d\n", micro_batch, r,
			        document->document, document->start + shard->q_offset, shard->q_count, shard->k_start,
			        shard->k_count);
		}
}
