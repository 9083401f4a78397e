def smape(forecast, actual):
    """Symmetric relative error in percent, over all hours that are not zero."""
    total, hours = 0.0, 0
    for row in range(len(actual)):
        for hour in range(len(actual[row])):
            size = abs(forecast[row][hour]) + abs(actual[row][hour])
            if size > 0:
                total += 2 * abs(forecast[row][hour] - actual[row][hour]) / size
                hours += 1
    return 100 * total / hours
