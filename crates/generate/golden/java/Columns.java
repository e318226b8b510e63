import java.lang.reflect.Constructor;
import java.lang.reflect.Method;

import org.apache.cassandra.stress.generate.DistributionFactory;
import org.apache.cassandra.stress.generate.values.Bytes;
import org.apache.cassandra.stress.generate.values.Generator;
import org.apache.cassandra.stress.generate.values.GeneratorConfig;
import org.apache.cassandra.stress.generate.values.HexBytes;
import org.apache.cassandra.stress.settings.OptionDistribution;

/** A column as cassandra-stress would make it: its generator from its type, name and distributions. */
final class Columns {
    static final String PROFILE = "seed for stress";

    /** "-" stands for what is not given. */
    static Generator<?> of(String type, String seedText, String name, String size, String population, String cluster)
            throws ReflectiveOperationException {
        GeneratorConfig config = new GeneratorConfig(seedText + name, factory(cluster), factory(size), factory(population));
        if (type.equals("hexbytes")) return new HexBytes(name, config);
        if (type.equals("bytes")) return new Bytes(name, config);
        String outer = type, inner = null;
        int angle = type.indexOf('<');
        if (angle > 0) {
            outer = type.substring(0, angle);
            inner = type.substring(angle + 1, type.length() - 1);
        }
        Class<?> info = Class.forName("org.apache.cassandra.stress.StressProfile$ColumnInfo");
        Method make = Table.open(info.getDeclaredMethod("getGenerator", String.class, String.class, String.class, GeneratorConfig.class));
        return (Generator<?>) make.invoke(null, name, outer, inner, config);
    }

    static DistributionFactory factory(String spec) {
        return spec.equals("-") ? null : OptionDistribution.get(spec);
    }

    static <T> T construct(Class<T> type, Class<?>[] kinds, Object... arguments) throws ReflectiveOperationException {
        Constructor<T> make = Table.open(type.getDeclaredConstructor(kinds));
        return make.newInstance(arguments);
    }
}
