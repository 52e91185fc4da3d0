/* SPDX-License-Identifier: MIT
 *
 * Binary search for n values of type T in rows of the same type. Value i is at values + i * sv, its
 * row at row + i * sr. Elements of the row are `step` bytes apart; `sorter`, if it is not NULL, has
 * the order of the elements, as int64 in bounds that are `sorter_step` bytes apart. All elements
 * come before NaN, and NaN comes before no number. */

/* Finds TOGETHER values in one contiguous row of at least one element, without branches that depend
 * on the values: the processor could not predict them. */
TN__INTO_LOOPS void NAME(search_together)(const char *row, int64_t size, const T *value,
                                          int64_t *found, const bool right)
{
    T element;
    for (int j = 0; j < TOGETHER; j++)
        found[j] = 0;
    for (int64_t left = size, half; left > 0; left -= half) {
        half = (left + 1) / 2;
        for (int j = 0; j < TOGETHER; j++) {
            memcpy(&element, row + (found[j] + half - 1) * (int64_t)sizeof element, sizeof element);
            bool before = IS_NAN(value[j]) | (right ? element <= value[j] : element < value[j]);
            found[j] += half & -(int64_t)before;
        }
    }
}

/* Finds values in one contiguous row, whole groups of them; returns how many. */
static int64_t NAME(search_row)(int64_t n, const char *row, int64_t size, const char *values,
                                int64_t sv, char *y, int64_t sy, bool right, bool narrow)
{
    int64_t i = 0;
    for (; i + TOGETHER <= n; i += TOGETHER) {
        T value[TOGETHER];
        int64_t found[TOGETHER];
        for (int j = 0; j < TOGETHER; j++)
            memcpy(&value[j], values + (i + j) * sv, sizeof value[j]);
        if (right)
            NAME(search_together)(row, size, value, found, true);
        else
            NAME(search_together)(row, size, value, found, false);
        for (int j = 0; j < TOGETHER; j++) {
            int32_t small = (int32_t)found[j];
            if (narrow)
                memcpy(y + (i + j) * sy, &small, sizeof small);
            else
                memcpy(y + (i + j) * sy, &found[j], sizeof found[j]);
        }
    }
    return i;
}

static void NAME(search)(SEARCH_PARAMETERS)
{
    int64_t begin = 0;
    if (sorter == NULL && step == (int64_t)sizeof(T) && sr == 0)
        begin = NAME(search_row)(n, row, size, values, sv, y, sy, right, narrow);
    for (int64_t i = begin; i < n; i++) {
        const char *from = row + i * sr, *order = sorter != NULL ? sorter + i * ss : NULL;
        int64_t low = 0, high = size;
        T value;

        memcpy(&value, values + i * sv, sizeof value);
        while (low < high) {
            int64_t middle = low + (high - low) / 2, at = middle;
            T element;

            if (order != NULL)
                memcpy(&at, order + middle * sorter_step, sizeof at);
            memcpy(&element, from + at * step, sizeof element);
            if (IS_NAN(value) || (right ? element <= value : element < value))
                low = middle + 1;
            else
                high = middle;
        }
        if (narrow) {
            int32_t result = (int32_t)low;
            memcpy(y + i * sy, &result, sizeof result);
        } else {
            memcpy(y + i * sy, &low, sizeof low);
        }
    }
}
