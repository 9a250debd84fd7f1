/* Queues and events of a CUDA device: streams and CUDA's events. */
#include "kernels/cuda/cuda.h"

#include <stdlib.h>

struct wlb_event {
	cudaEvent_t event;
};

/* Returns `object`, or NULL after it has freed it where CUDA could not make what it holds. */
static void *made(struct wlb_device *device, void *object, cudaError_t status, const char *what,
                  struct wlb_error *error)
{
	if (object != NULL && status == cudaSuccess)
		return object;
	wlb_fail(error, "cannot make %s on %s: %s", what, wlb_cuda_of(device)->name,
	         object != NULL ? cudaGetErrorString(status) : "out of host memory");
	free(object);
	return NULL;
}

struct wlb_queue *wlb_cuda_queue_new(struct wlb_device *device, int high_priority, struct wlb_error *error)
{
	int least = 0, greatest = 0; /* a number that is less is a priority that is greater */
	struct wlb_queue *queue = calloc(1, sizeof(*queue));
	cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
	if (queue != NULL && status == cudaSuccess)
		status = cudaStreamCreateWithPriority(&queue->stream, cudaStreamNonBlocking,
		                                      high_priority ? greatest : least);
	return made(device, queue, status, "a queue", error);
}

void wlb_cuda_queue_free(struct wlb_device *device, struct wlb_queue *queue)
{
	if (queue != NULL)
		wlb_cuda_check(device, cudaStreamDestroy(queue->stream), "queue_free");
	free(queue);
}

void *wlb_cuda_queue_handle(struct wlb_device *device, struct wlb_queue *queue)
{
	return wlb_cuda_stream(device, queue);
}

struct wlb_event *wlb_cuda_event_new(struct wlb_device *device, int timed, struct wlb_error *error)
{
	struct wlb_event *event = calloc(1, sizeof(*event));
	cudaError_t status = cudaSuccess;
	if (event != NULL)
		status = cudaEventCreateWithFlags(&event->event, timed ? cudaEventDefault : cudaEventDisableTiming);
	return made(device, event, status, "an event", error);
}

void wlb_cuda_event_free(struct wlb_device *device, struct wlb_event *event)
{
	if (event != NULL)
		wlb_cuda_check(device, cudaEventDestroy(event->event), "event_free");
	free(event);
}

void wlb_cuda_event_record(struct wlb_device *device, struct wlb_event *event, struct wlb_queue *queue)
{
	wlb_cuda_check(device, cudaEventRecord(event->event, wlb_cuda_stream(device, queue)), "event_record");
}

void wlb_cuda_queue_wait(struct wlb_device *device, struct wlb_queue *queue, struct wlb_event *event)
{
	wlb_cuda_check(device, cudaStreamWaitEvent(wlb_cuda_stream(device, queue), event->event, 0), "queue_wait");
}

int wlb_cuda_event_wait(struct wlb_device *device, struct wlb_event *event, struct wlb_error *error)
{
	wlb_cuda_count_host_wait(device);
	wlb_cuda_check(device, cudaEventSynchronize(event->event), "event_wait");
	return wlb_cuda_report(device, error);
}

/* It keeps no error, since any thread may call it. An event that is not reached yet is no error, but CUDA keeps it as
 * one, which the next launch of this thread would report. In a thread that has not chosen a device, CUDA would take
 * memory of the first one for it. */
int wlb_cuda_event_done(struct wlb_device *device, struct wlb_event *event)
{
	cudaSetDevice(wlb_cuda_of(device)->index);
	if (cudaEventQuery(event->event) != cudaErrorNotReady)
		return 1;
	cudaGetLastError();
	return 0;
}

double wlb_cuda_event_elapsed_s(struct wlb_device *device, struct wlb_event *from, struct wlb_event *to)
{
	float elapsed_ms = 0.0f;
	wlb_cuda_check(device, cudaEventElapsedTime(&elapsed_ms, from->event, to->event), "event_elapsed_s");
	return 1e-3 * (double)elapsed_ms;
}
