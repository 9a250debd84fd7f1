#include "coordinator/wlbd/api/runs/metrics.h"

#include <event2/buffer.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/database/lease.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/wlbd.h"

enum { NOT_STORED_FOR_MS = 10000 }; /* what waits to be stored is tried again within that time */

bool wlbd_database_stores(const struct wlbd *wlbd)
{
	bool failed = wlbd->not_stored_ms != 0 && wlb_clock_ms() - wlbd->not_stored_ms < NOT_STORED_FOR_MS;
	return wlbd_db_ready(wlbd->writes) && !failed;
}

struct page {
	struct evbuffer *out;
	bool is_openmetrics;
};

static void write_header(const struct page *page, const char *name, const char *type, const char *help)
{
	static const char end[] = "_total";
	size_t bytes = strlen(name), end_bytes = strlen(end);
	if (page->is_openmetrics && bytes > end_bytes && strcmp(name + bytes - end_bytes, end) == 0)
		bytes -= end_bytes;
	evbuffer_add_printf(page->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)bytes, name, help, (int)bytes, name,
	                    type);
}

static void write_value(const struct page *page, const char *name, const char *type, const char *help, double value)
{
	write_header(page, name, type, help);
	evbuffer_add_printf(page->out, "%s %.17g\n", name, value);
}

static void write_requests(const struct wlbd_counters *m, const struct page *page)
{
	write_header(page, "wlbd_requests_total", "counter", "Requests answered, by class of status.");
	for (int i = 2; i < 6; i++)
		evbuffer_add_printf(page->out, "wlbd_requests_total{status=\"%dxx\"} %llu\n", i,
		                    (unsigned long long)m->requests[i]);
	write_value(page, "wlbd_request_seconds_total", "counter", "Time from a request to its reply, summed.",
	            m->request_seconds);
}

static void write_faults(const struct wlbd_counters *m, const struct page *page)
{
	write_header(page, "wlbd_faults_total", "counter", "Faults found since wlbd was started.");
	for (int kind = 0; kind < WLB_FAULT_KIND_COUNT; kind++)
		if (wlb_faults[kind].is_loss)
			evbuffer_add_printf(page->out, "wlbd_faults_total{kind=\"%s\"} %llu\n", wlb_faults[kind].name,
			                    (unsigned long long)m->faults[kind]);
}

/* The highest step that a process of a running attempt has reported. */
static void write_steps(const struct wlbd *wlbd, const struct page *page)
{
	const struct wlbd_attempt *attempt;
	const struct wlbd_reporter *reporter;
	write_header(page, "wlbd_run_step", "gauge", "Step that a live attempt is at.");
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	{
		int64_t step = 0;
		if (wlbd_attempt_has_ended(&attempt->incident.life))
			continue;
		TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
		step = reporter->step > step ? reporter->step : step;
		evbuffer_add_printf(page->out, "wlbd_run_step{run=\"%s\",attempt=\"%lld\"} %lld\n", attempt->run,
		                    (long long)attempt->number, (long long)step);
	}
}

/* Of what only a wlbd that acts has. */
static void write_acting(const struct wlbd *wlbd, const struct page *page)
{
	const struct wlbd_counters *m = &wlbd->counters;
	write_value(page, "wlbd_statements_set_aside_total", "counter",
	            "Findings of wlbd that the database did not store; the log names each.",
	            (double)m->statements_dropped);
	write_value(page, "wlbd_statements_waiting", "gauge", "Findings of wlbd that the database has not stored yet.",
	            wlbd_outbox_count(wlbd->outbox));
	write_value(page, "wlbd_records_stored_total", "counter", "Records committed.", (double)m->records_stored);
	write_value(page, "wlbd_reports_total", "counter", "Reports accepted.", (double)m->reports);
	write_value(page, "wlbd_rank_steps_total", "counter",
	            "Steps that ranks have reported, a step of each rank counted.", (double)m->rank_steps);
	write_value(page, "wlbd_rank_steps_lost_total", "counter", "Steps of ranks that their nodes could not report.",
	            (double)m->rank_steps_lost);
	write_value(page, "wlbd_reporters", "gauge", "Processes that report.", wlbd->attempts->reporters);
	write_value(page, "wlbd_attempts", "gauge", "Attempts in memory.", wlbd->attempts->count);
	write_value(page, "wlbd_attempts_started_total", "counter", "Attempts that launchers were told to start.",
	            (double)m->attempts_started);
	write_value(page, "wlbd_stack_gatherings_total", "counter",
	            "Times that the stacks of an attempt were asked for.", (double)m->stacks_asked);
	write_value(page, "wlbd_stack_reports_total", "counter", "Stacks of a node committed.",
	            (double)m->stacks_stored);
	write_faults(m, page);
	write_value(page, "wlbd_evictions_total", "counter",
	            "Attempts that were ended because ranks hung, were slow or computed wrong values.",
	            (double)m->evictions);
	write_steps(wlbd, page);
}

void wlbd_metrics_write(const struct wlbd *wlbd, bool is_openmetrics, struct evbuffer *out)
{
	const struct page page = {.out = out, .is_openmetrics = is_openmetrics};
	const struct wlbd_counters *m = &wlbd->counters;
	write_header(&page, "wlbd_build_info", "gauge", "Version of wlbd.");
	evbuffer_add_printf(out, "wlbd_build_info{version=\"%s\"} 1\n", WLB_VERSION);
	write_value(&page, "wlbd_active", "gauge", "Whether it acts; 0: it stands by.", wlbd->is_acting);
	write_requests(m, &page);
	write_value(&page, "wlbd_database_up", "gauge", "Whether PostgreSQL answers and stores.",
	            wlbd->is_acting ? wlbd_database_stores(wlbd) : *wlbd_lease_reason(wlbd->lease) == '\0');
	write_value(&page, "wlbd_database_losses_total", "counter", "Connections to PostgreSQL lost or not made.",
	            (double)m->database_losses);
	if (wlbd->is_acting)
		write_acting(wlbd, &page);
	if (is_openmetrics)
		evbuffer_add_printf(out, "# EOF\n");
}
