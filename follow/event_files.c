#include "follow/event_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "follow/event_message.h"
#include "follow/tfrecord.h"

enum { CHUNK_BYTES = 2 * (WLB_TFRECORD_DATA_MOST + WLB_TFRECORD_FRAME_BYTES) };

struct event_file {
	char name[WLB_EVENT_NAME_SIZE], prefix[WLB_EVENT_NAME_SIZE];
	struct wlb_tail_place
		place;          /* of the next byte to read; between two polls that of a record, but while skipping */
	int64_t record_at;      /* where the next record begins */
	int64_t skip_bytes;     /* left of a long record */
	double damaged_since_s; /* the record there is damaged; 0: it is not */
	bool is_ended;
};

struct wlb_event_files {
	char folder[4096];
	struct wlb_event_counts counts;
	struct event_file *all[WLB_EVENT_FILES_MOST];
	double since_s;
	/* The poll. */
	int current, polled; /* the file that is read, and how many were in this poll */
	int64_t left_bytes;
	size_t begin, end; /* of what is left of the chunk */
	unsigned char chunk[CHUNK_BYTES];
};

struct wlb_event_files *wlb_event_files_open(const char *folder, struct wlb_error *error)
{
	struct wlb_event_files *files = calloc(1, sizeof(*files));
	if (files == NULL || strlen(folder) >= sizeof(files->folder)) {
		wlb_fail(error, "TensorBoard folder %.200s: %s", folder,
		         files == NULL ? "out of memory" : "the path has more than 4095 bytes");
		free(files);
		return NULL;
	}
	strcpy(files->folder, folder);
	return files;
}

void wlb_event_files_close(struct wlb_event_files *files)
{
	for (int i = 0; files != NULL && i < files->counts.files; i++)
		free(files->all[i]);
	free(files);
}

static struct event_file *find_file(struct wlb_event_files *files, const char *name)
{
	for (int i = 0; i < files->counts.files; i++)
		if (strcmp(files->all[i]->name, name) == 0)
			return files->all[i];
	return NULL;
}

/* NULL where there is no room. */
static struct event_file *add_file(struct wlb_event_files *files, const char *name)
{
	struct event_file *file = NULL;
	if (files->counts.files < WLB_EVENT_FILES_MOST && strlen(name) < sizeof(file->name))
		file = calloc(1, sizeof(*file));
	if (file == NULL)
		return NULL;
	strcpy(file->name, name);
	files->all[files->counts.files++] = file;
	return file;
}

static void take_found(void *context, const char *name, const char *prefix, double changed_s)
{
	struct wlb_event_files *files = context;
	struct event_file *file = find_file(files, name);
	if (file == NULL && changed_s < files->since_s)
		return;
	if (file == NULL)
		file = add_file(files, name);
	if (file == NULL)
		files->counts.files_left_out++;
	else if (file->record_at == 0) /* names stay as they were once */
		snprintf(file->prefix, sizeof(file->prefix), "%s", prefix);
}

void wlb_event_files_search(struct wlb_event_files *files, double since_s)
{
	files->since_s = since_s;
	files->counts.files_left_out = 0;
	files->counts.unread_folders = wlb_event_folder_search(files->folder, take_found, files);
}

void wlb_event_files_poll(struct wlb_event_files *files)
{
	files->left_bytes = WLB_EVENT_POLL_BYTES;
	files->polled = 0;
}

/* Ends the reading of the current file in this poll, at the record that is next. */
static void leave_file(struct wlb_event_files *files)
{
	struct event_file *file = files->all[files->current];
	if (file->skip_bytes == 0)
		file->place.offset = file->record_at;
	files->begin = files->end = 0;
	files->current = (files->current + 1) % files->counts.files;
	files->polled++;
}

/* Reads on in the current file, from the record that is next. */
static bool read_chunk(struct wlb_event_files *files)
{
	struct event_file *file = files->all[files->current];
	char path[sizeof(files->folder) + sizeof(file->name) + 1];
	size_t count;
	if (file->skip_bytes == 0)
		file->place.offset = file->record_at;
	snprintf(path, sizeof(path), "%s/%s", files->folder, file->name);
	enum wlb_tail_result result =
		wlb_tail_read(path, &file->place, (char *)files->chunk, sizeof(files->chunk), &count, NULL);
	if (result == WLB_TAIL_ANOTHER) {
		file->record_at = file->skip_bytes = 0;
		file->damaged_since_s = 0;
		file->is_ended = false;
	}
	files->begin = 0;
	files->end = count;
	files->left_bytes -= (int64_t)count;
	return result == WLB_TAIL_BYTES;
}

static void pass(struct wlb_event_files *files, struct event_file *file, int64_t bytes)
{
	int64_t here = (int64_t)(files->end - files->begin);
	int64_t passed = bytes < here ? bytes : here;
	files->begin += (size_t)passed;
	file->skip_bytes = bytes - passed;
	if (file->skip_bytes == 0)
		file->record_at = file->place.offset - (int64_t)(files->end - files->begin);
	file->damaged_since_s = 0;
}

/* Returns whether the damage is passed over; else it is looked at again in the next poll. */
static bool pass_damage(struct wlb_event_files *files, struct event_file *file, int64_t bytes, double now_s)
{
	if (file->damaged_since_s == 0)
		file->damaged_since_s = now_s;
	if (now_s - file->damaged_since_s < WLB_EVENT_PATIENCE_S)
		return false;
	file->is_ended = bytes == 0;
	files->counts.ended_files += bytes == 0;
	files->counts.damaged += bytes > 0;
	if (bytes > 0)
		pass(files, file, bytes);
	return bytes > 0;
}

/* Takes the next record of the chunk. Returns whether it has scalars; the chunk may then be used up, or the file be
 * left. */
static bool take_record(struct wlb_event_files *files, double now_s, struct wlb_followed *found)
{
	struct event_file *file = files->all[files->current];
	struct wlb_tfrecord record;
	bool is_full = files->end == sizeof(files->chunk), has_scalars = false;
	int64_t at = file->record_at;
	if (file->skip_bytes > 0) {
		pass(files, file, file->skip_bytes);
		return false;
	}
	switch (wlb_tfrecord_read(files->chunk + files->begin, files->end - files->begin, &record)) {
	case WLB_TFRECORD_DATA:
		has_scalars = wlb_event_message_read(record.data, record.length, file->prefix, found) > 0;
		found->at = at;
		pass(files, file, record.bytes);
		break;
	case WLB_TFRECORD_LONG:
		pass(files, file, record.bytes);
		break;
	case WLB_TFRECORD_PART:
		if (is_full)
			files->begin = files->end; /* the rest of the record is behind the chunk */
		else
			leave_file(files);
		break;
	case WLB_TFRECORD_DAMAGED_DATA:
	case WLB_TFRECORD_DAMAGED_LENGTH:
		if (!pass_damage(files, file, record.bytes, now_s))
			leave_file(files);
		break;
	}
	return has_scalars;
}

bool wlb_event_files_next(struct wlb_event_files *files, double now_s, struct wlb_followed *record, int *file)
{
	while (files->polled < files->counts.files) {
		*file = files->current;
		if (files->begin < files->end) {
			if (take_record(files, now_s, record))
				return true;
		} else if (files->left_bytes <= 0) {
			return false;
		} else if (files->all[files->current]->is_ended || !read_chunk(files)) {
			leave_file(files);
		}
	}
	return false;
}

struct wlb_event_counts wlb_event_files_counts(const struct wlb_event_files *files)
{
	return files->counts;
}

const char *wlb_event_files_name(const struct wlb_event_files *files, int file)
{
	return files->all[file]->name;
}

struct wlb_tail_place wlb_event_files_place(const struct wlb_event_files *files, int file)
{
	struct wlb_tail_place place = files->all[file]->place;
	place.offset = files->all[file]->record_at;
	return place;
}

int wlb_event_files_restore(struct wlb_event_files *files, const char *name, const struct wlb_tail_place *place)
{
	struct event_file *file = add_file(files, name);
	if (file == NULL)
		return -1;
	file->place = *place;
	file->record_at = place->offset;
	return 0;
}
