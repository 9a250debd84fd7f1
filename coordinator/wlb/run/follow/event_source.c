#include "coordinator/wlb/run/follow/event_source.h"

#include <stddef.h>

#include "coordinator/wlb/run/command/command_words.h"

static const double SEARCH_EVERY_S = 10.0;

const char *wlb_event_folder_of(char *const *words)
{
	static const char *const names[] = {"--tensorboard-dir", "--tensorboard_dir", "--tensorboard-log-dir",
	                                    "--logging-dir",     "--logging_dir",     "--logdir"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *folder = wlb_run_word_value(words, names[i]);
		if (folder != NULL && folder[0] != '\0')
			return folder;
	}
	return NULL;
}

int wlb_event_source_open(struct wlb_event_source *source, const char *folder, double since_s, struct wlb_error *error)
{
	*source = (struct wlb_event_source){.since_s = since_s};
	if (folder != NULL)
		source->files = wlb_event_files_open(folder, error);
	return folder == NULL || source->files != NULL ? 0 : -1;
}

void wlb_event_source_close(struct wlb_event_source *source)
{
	wlb_event_files_close(source->files);
}

void wlb_event_source_poll(struct wlb_event_source *source, struct wlb_merged_records *records, double now_s,
                           bool is_last)
{
	int file;
	if (source->files == NULL)
		return;
	if (is_last || now_s - source->searched_s >= SEARCH_EVERY_S) {
		source->searched_s = now_s;
		wlb_event_files_search(source->files, source->since_s);
	}
	wlb_event_files_poll(source->files);
	while (wlb_event_files_next(source->files, now_s, &source->record, &file)) {
		const struct wlb_origin origin = {.source = WLB_SOURCE_TENSORBOARD,
		                                  .stream = file,
		                                  .generation = wlb_event_files_place(source->files, file).generation,
		                                  .at = source->record.at};
		wlb_merged_records_take(records, &origin, &source->record, now_s);
	}
}
