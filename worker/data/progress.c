#include "worker/data/progress.h"

#include <stdio.h>

#include "common/seconds.h"

#define PAUSE_S 0.1
#define FIRST_ESTIMATE_S 2.0

void wlb_progress_begin(struct wlb_progress *p, int is_shown, int64_t bytes, int64_t skipped)
{
	*p = (struct wlb_progress){.is_shown = is_shown, .bytes = bytes, .skipped = skipped, .began_s = wlb_now_s()};
}

int wlb_progress_is_due(const struct wlb_progress *p)
{
	return p->is_shown && wlb_now_s() - p->shown_s >= PAUSE_S;
}

/* Writes how long the rest takes; nothing as long as that cannot be told. */
static void write_left(const struct wlb_progress *p, int64_t bytes_done, double now_s, char *text, size_t size)
{
	double took_s = now_s - p->began_s;
	text[0] = '\0';
	if (took_s < FIRST_ESTIMATE_S || bytes_done <= p->skipped || bytes_done > p->bytes)
		return;
	double left_s = took_s * (double)(p->bytes - bytes_done) / (double)(bytes_done - p->skipped);
	if (left_s >= 3600)
		snprintf(text, size, ", %.0f h %02d min left", (double)(int64_t)(left_s / 3600),
		         (int)((int64_t)(left_s / 60) % 60));
	else if (left_s >= 60)
		snprintf(text, size, ", %d min %02d s left", (int)(left_s / 60), (int)left_s % 60);
	else
		snprintf(text, size, ", %d s left", (int)left_s);
}

void wlb_progress_show(struct wlb_progress *p, int64_t bytes_done, int64_t documents, int64_t tokens)
{
	char left[48];
	p->shown_s = wlb_now_s();
	write_left(p, bytes_done, p->shown_s, left, sizeof(left));
	fprintf(stderr, "\r%.1f of %.1f MB read, %lld documents, %.1f million tokens%s \033[K",
	        1e-6 * (double)bytes_done, 1e-6 * (double)p->bytes, (long long)documents, 1e-6 * (double)tokens, left);
}

void wlb_progress_end(const struct wlb_progress *p)
{
	if (p->is_shown)
		fputs("\r\033[K", stderr);
}
