/* SPDX-License-Identifier: MIT
 *
 * Binary search for n values of type T in rows of the same type. Value i is at values + i * sv, its
 * row at row + i * sr. Elements of the row are `step` bytes apart; `sorter`, if it is not NULL, has
 * the order of the elements, as int64 in bounds that are `sorter_step` bytes apart. All elements
 * come before NaN, and NaN comes before no number. */

static void NAME(search)(SEARCH_PARAMETERS)
{
    for (int64_t i = 0; i < n; i++) {
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
