/*
 * Reads the scalars of an event of TensorBoard, a protobuf message (tensorboard/compat/proto: event.proto,
 * summary.proto, tensor.proto, tensor_shape.proto, types.proto), as far as scalars need it:
 *
 *     Event:       double wall_time = 1, int64 step = 2, Summary summary = 5
 *     Summary:     repeated Value value = 1
 *     Value:       string tag = 1, float simple_value = 2, TensorProto tensor = 8
 *     TensorProto: dtype = 1, shape = 2 (repeated dim = 2), bytes content = 4, repeated float = 5, double = 6,
 *                  int = 7, int64 = 10
 *
 * torch's SummaryWriter writes simple_value, and with new_style=True a tensor without dimensions, as TensorFlow 2 does.
 * Images, histograms, texts and hyperparameters are passed over.
 *
 * Pure: no I/O, no allocation; the time is proportional to the bytes.
 */
#ifndef FOLLOW_EVENT_MESSAGE_H
#define FOLLOW_EVENT_MESSAGE_H

#include "follow/followed.h"

/* Returns how many scalars the event has (0: it is of something else), -1 where the bytes are no event. An event
 * without a step has the step 0, as its writer cannot say otherwise. `prefix` stands before each name. */
int wlb_event_message_read(const unsigned char *bytes, size_t length, const char *prefix, struct wlb_followed *record);

#endif
