#include "follow/event_message.h"

#include <stdbool.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };     /* types of protobuf's wire format */
enum { FLOAT = 1, DOUBLE = 2, INT32 = 3, INT64 = 9 };         /* DataType of types.proto */
enum { VARINT_BYTES_MOST = 10, FIELD_NUMBER_MOST = 1 << 29 }; /* of protobuf */

struct message {
	const unsigned char *at, *end;
};

struct field {
	int number, type;
	uint64_t value;        /* of VARINT, FIXED64 and FIXED32 */
	struct message inside; /* of BYTES */
};

static bool read_varint(struct message *message, uint64_t *value)
{
	*value = 0;
	for (int i = 0; i < VARINT_BYTES_MOST && message->at < message->end; i++) {
		unsigned char byte = *message->at++;
		*value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool read_fixed(struct message *message, int bytes, uint64_t *value)
{
	*value = 0;
	if (message->end - message->at < bytes)
		return false;
	for (int i = bytes - 1; i >= 0; i--)
		*value = *value << 8 | message->at[i];
	message->at += bytes;
	return true;
}

static bool read_inside(struct message *message, struct message *inside)
{
	uint64_t length;
	if (!read_varint(message, &length) || length > (uint64_t)(message->end - message->at))
		return false;
	*inside = (struct message){message->at, message->at + length};
	message->at += length;
	return true;
}

/* Returns 1 with the next field, 0 at the end, -1 where the bytes are none. */
static int next_field(struct message *message, struct field *field)
{
	uint64_t key;
	if (message->at == message->end)
		return 0;
	if (!read_varint(message, &key) || key >> 3 == 0 || key >> 3 >= FIELD_NUMBER_MOST)
		return -1;
	field->number = (int)(key >> 3);
	field->type = (int)(key & 7);
	switch (field->type) {
	case VARINT:
		return read_varint(message, &field->value) ? 1 : -1;
	case FIXED64:
		return read_fixed(message, 8, &field->value) ? 1 : -1;
	case FIXED32:
		return read_fixed(message, 4, &field->value) ? 1 : -1;
	case BYTES:
		return read_inside(message, &field->inside) ? 1 : -1;
	default:
		return -1;
	}
}

static double float_of(uint64_t bits)
{
	uint32_t narrow = (uint32_t)bits;
	float value;
	memcpy(&value, &narrow, sizeof(value));
	return value;
}

static double double_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* The number of that type at the beginning of the bytes: of TensorProto's content, or of a packed field. */
static bool read_number(struct message bytes, int data_type, bool is_packed, double *value)
{
	uint64_t bits;
	bool is_integer = data_type == INT32 || data_type == INT64;
	int width = data_type == FLOAT || data_type == INT32 ? 4 : 8;
	if (is_packed && is_integer ? !read_varint(&bytes, &bits) : !read_fixed(&bytes, width, &bits))
		return false;
	if (bytes.at != bytes.end) /* more than one number */
		return false;
	if (is_integer)
		*value = data_type == INT32 ? (int32_t)bits : (double)(int64_t)bits;
	else
		*value = data_type == FLOAT ? float_of(bits) : double_of(bits);
	return true;
}

/* The number of a field of TensorProto, repeated or packed, or of its content. */
static bool read_tensor_field(const struct field *field, int data_type, double *value)
{
	static const int types_of[] = {[5] = FLOAT, [6] = DOUBLE, [7] = INT32, [10] = INT64};
	bool is_content = field->number == 4;
	if (!is_content && (field->number > 10 || data_type == 0 || types_of[field->number] != data_type))
		return false;
	if (field->type == BYTES)
		return read_number(field->inside, data_type, !is_content, value);
	if (is_content)
		return false;
	*value = data_type == FLOAT    ? float_of(field->value)
	         : data_type == DOUBLE ? double_of(field->value)
	         : data_type == INT32  ? (int32_t)field->value
	                               : (double)(int64_t)field->value;
	return true;
}

/* Whether a shape has no dimension. */
static bool is_scalar_shape(struct message shape)
{
	struct field field;
	while (next_field(&shape, &field) > 0)
		if (field.number == 2)
			return false;
	return true;
}

/* Whether the tensor is a scalar of a type that is read; the type may stand behind the number. */
static bool read_tensor(struct message tensor, double *value)
{
	struct message again = tensor;
	struct field field;
	int data_type = 0;
	bool is_found = false;
	while (next_field(&again, &field) > 0) {
		if (field.number == 1 && field.type == VARINT)
			data_type = (int)(field.value & 0xff);
		if (field.number == 2 && field.type == BYTES && !is_scalar_shape(field.inside))
			return false;
	}
	if (data_type != FLOAT && data_type != DOUBLE && data_type != INT32 && data_type != INT64)
		return false;
	while (next_field(&tensor, &field) > 0)
		is_found |= read_tensor_field(&field, data_type, value);
	return is_found;
}

/* Megatron-LM writes each value twice, the second time with the number of samples in place of the step. */
static bool is_by_samples(struct message tag)
{
	static const char end[] = " vs samples";
	size_t bytes = sizeof(end) - 1;
	return (size_t)(tag.end - tag.at) > bytes && memcmp(tag.end - bytes, end, bytes) == 0;
}

/* Adds a value of a summary. Returns -1 where the bytes are none. */
static int read_value(struct message message, const char *prefix, struct wlb_followed *record)
{
	struct message tag = {message.at, message.at};
	char name[4 * WLB_VALUE_NAME_SIZE];
	struct field field;
	double value = 0;
	bool is_scalar = false;
	int rc;
	while ((rc = next_field(&message, &field)) > 0) {
		if (field.number == 1 && field.type == BYTES)
			tag = field.inside;
		if (field.number == 2 && field.type == FIXED32) {
			value = float_of(field.value);
			is_scalar = true;
		}
		if (field.number == 8 && field.type == BYTES)
			is_scalar = read_tensor(field.inside, &value);
	}
	size_t used = strlen(prefix), length = (size_t)(tag.end - tag.at);
	if (rc < 0 || !is_scalar || used >= sizeof(name) || is_by_samples(tag))
		return rc;
	length = length < sizeof(name) - used ? length : sizeof(name) - used;
	memcpy(name, prefix, used);
	memcpy(name + used, tag.at, length);
	wlb_followed_add(record, name, used + length, value);
	return 0;
}

static int read_summary(struct message summary, const char *prefix, struct wlb_followed *record)
{
	struct field field;
	int rc;
	while ((rc = next_field(&summary, &field)) > 0)
		if (field.number == 1 && field.type == BYTES && read_value(field.inside, prefix, record) < 0)
			return -1;
	return rc;
}

int wlb_event_message_read(const unsigned char *bytes, size_t length, const char *prefix, struct wlb_followed *record)
{
	struct message event = {bytes, bytes + length};
	struct field field;
	int rc;
	wlb_followed_begin(record);
	wlb_followed_set_step(record, WLB_FOLLOWED_STEP, 0);
	while ((rc = next_field(&event, &field)) > 0) {
		if (field.number == 1 && field.type == FIXED64) {
			double time_s = double_of(field.value);
			record->time_s = time_s > 0 && time_s < 1e11 ? time_s : 0;
		}
		if (field.number == 2 && field.type == VARINT) {
			record->step_kind = WLB_FOLLOWED_NO_STEP; /* and stays so where the number is out of bounds */
			wlb_followed_set_step(record, WLB_FOLLOWED_STEP, (double)(int64_t)field.value);
		}
		if (field.number == 5 && field.type == BYTES && read_summary(field.inside, prefix, record) < 0)
			return -1;
	}
	return rc < 0 ? -1 : record->count;
}
