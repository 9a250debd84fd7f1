/* wlb top: what each rank of a run does now. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/output/colour.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/run_name.h"
#include "coordinator/wlb/top/fetch.h"
#include "coordinator/wlb/top/page.h"
#include "coordinator/wlb/top/screen.h"

enum {
	PERIOD_MS = 1000,
	FIRST_MS = 30000, /* for the first answer, as other subcommands have it */
	LATER_MS = 5000,
};

struct request {
	const char *name;
	enum wlb_top_by by;
	bool once, no_color;
};

/* ---- a page ------------------------------------------------------------------------------------------------------ */

static bool is_coloured(const struct request *request)
{
	return !request->no_color && wlb_colour_shown();
}

/* The page is written at once, so that no half of it is seen. */
static int write_page(const struct wlb_top_frame *sizes, const struct wlb_top_view *view, enum wlb_top_by by,
                      const char *note, struct wlb_error *error)
{
	struct wlb_top_frame frame = *sizes;
	char *text = NULL;
	size_t length = 0;
	frame.out = open_memstream(&text, &length);
	if (frame.out == NULL)
		return wlb_fail(error, "out of memory for the page");
	int rc = wlb_top_page_draw(&frame, view, by, note);
	if (fclose(frame.out) != 0 || rc != 0)
		rc = wlb_fail(error, "out of memory for the page");
	else if (fwrite(text, 1, length, stdout) != length || fflush(stdout) != 0)
		rc = wlb_fail(error, "the page cannot be written to standard output");
	free(text);
	return rc;
}

/* A page that stays: all of its lines, and what is said of a run that has ended. */
static int print_page(const struct request *request, const struct wlb_top_view *view, struct wlb_error *error)
{
	struct wlb_top_frame frame = {.is_coloured = is_coloured(request)};
	int rows;
	wlb_screen_size(&frame.columns, &rows);
	if (write_page(&frame, view, request->by, "", error) != 0)
		return -1;
	if (wlb_top_view_has_ended(view))
		printf("The run has ended: %s. 'wlb show %s' shows why.\n", wlb_field_text(view->run, "state", "?"),
		       request->name);
	return 0;
}

static int draw_page(const struct request *request, const struct wlb_top_view *view, const char *note,
                     struct wlb_error *error)
{
	struct wlb_top_frame frame = {.is_coloured = is_coloured(request), .is_live = true};
	wlb_screen_size(&frame.columns, &frame.rows);
	return write_page(&frame, view, request->by, note, error);
}

/* ---- live -------------------------------------------------------------------------------------------------------- */

/* Draws again when the size changes, until the time is over or there is another event. */
static enum wlb_screen_event wait_and_draw(const struct request *request, const struct wlb_top_view *view,
                                           struct wlb_screen *screen, const char *note, int64_t until_ms)
{
	enum wlb_screen_event event;
	while ((event = wlb_screen_wait(screen, wlb_clock_left_ms(until_ms))) == WLB_SCREEN_DRAW ||
	       (event == WLB_SCREEN_NONE && wlb_clock_left_ms(until_ms) > 0))
		if (event == WLB_SCREEN_DRAW && draw_page(request, view, note, NULL) != 0)
			return WLB_SCREEN_QUIT;
	return event;
}

/* While the coordinator is unavailable the page stays, with a line that says so. A refusal, of a run that was removed
 * or is hidden now, ends the command. */
static int update(struct wlb_connection *connection, const struct request *request, struct wlb_top_view *view,
                  const struct wlb_screen *screen, char *note, size_t size, struct wlb_error *error)
{
	int status = 0;
	if (wlb_top_fetch(connection, request->name, LATER_MS, view, &status, error) == 0) {
		note[0] = '\0';
		return 0;
	}
	if (status == 403 || status == 404)
		return -1;
	if (wlb_screen_has_event(screen)) /* it has ended the request, so the coordinator may well be there */
		return 0;
	snprintf(note, size, "%.0f s old: %.500s", (double)(wlb_clock_ms() - view->fetched_ms) / 1000, error->message);
	return 0;
}

static int follow(struct wlb_connection *connection, const struct request *request, struct wlb_top_view *view,
                  struct wlb_screen *screen, struct wlb_error *error)
{
	char note[640] = "";
	while (!wlb_top_view_has_ended(view)) {
		int64_t next_ms = wlb_clock_ms() + PERIOD_MS;
		if (draw_page(request, view, note, error) != 0)
			return -1;
		if (wait_and_draw(request, view, screen, note, next_ms) != WLB_SCREEN_NONE)
			return 0;
		/* A key or a signal ends a request that waits: the coordinator may not answer. */
		wlb_connection_cancel_on(connection, screen->events_fd);
		if (update(connection, request, view, screen, note, sizeof(note), error) != 0)
			return -1;
	}
	return 0;
}

static int show_live(struct wlb_connection *connection, const struct request *request, struct wlb_top_view *view,
                     struct wlb_error *error)
{
	struct wlb_screen screen;
	if (wlb_screen_open(&screen, error) != 0)
		return -1;
	int rc = follow(connection, request, view, &screen, error);
	wlb_connection_cancel_on(connection, -1);
	wlb_screen_close(&screen);
	/* The last page disappears with the screen. */
	return rc == 0 && wlb_top_view_has_ended(view) ? print_page(request, view, error) : rc;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int show_run(struct wlb_connection *connection, const struct request *request, struct wlb_error *error)
{
	struct wlb_top_view view = {0};
	int status, rc = wlb_top_fetch(connection, request->name, FIRST_MS, &view, &status, error);
	bool is_live = !request->once && isatty(STDOUT_FILENO) && rc == 0 && !wlb_top_view_has_ended(&view);
	if (rc == 0)
		rc = is_live ? show_live(connection, request, &view, error) : print_page(request, &view, error);
	wlb_top_view_free(&view);
	return rc;
}

static int top(void *values, struct wlb_error *error)
{
	struct request *request = values;
	char name[WLB_RUN_NAME_BYTES];
	int found = wlb_run_name_find(request->name, name, error);
	if (found != WLB_EXIT_DONE)
		return found;
	request->name = name;
	wlb_pending_deliver();
	struct wlb_connection *connection = wlb_api_open(error);
	if (connection == NULL)
		return WLB_EXIT_FAILED;
	int rc = show_run(connection, request, error);
	wlb_connection_free(connection);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(name), "RUN", WLB_RUN_NAME_HELP), .required = true},
	{WLB_OPTION(CHOICE, "by", FIELD(by), NULL,
                    "put the ranks of a node side by side, or those that are one group of that parallelism"),
         .choices = "node|tp|cp|pp|dp", .initial = "node"},
	{WLB_OPTION(FLAG, "once", FIELD(once), NULL,
                    "print one page and end, as where standard output is no terminal")},
	{WLB_OPTION(FLAG, "no-color", FIELD(no_color), NULL, "no colours, as where NO_COLOR is set")},
};

static const struct wlb_option_table table = {
	.command = "wlb top",
	.about = "Shows what each rank of a run does now, drawn again each second until q or Ctrl-C: the ranks by node "
		 "or group, those that are behind, and the collectives in progress with the ranks that have not "
		 "entered them.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_top = {
	.name = "top",
	.summary = "Show what each rank of a run does now",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = top,
};
